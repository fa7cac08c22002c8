"""Settings: closed, finite, every problem at once; nested and flat forms; layers that merge by branch."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from dice_ray.settings import Branch, Choice, Settings, flat, merge, nest, nested, non_defaults, paths, problems_of


class LgConfig(Branch):
    name = "lg"
    k: float = 1.0


class InverseConfig(Branch):
    name = "inverse"


class FocalConfig(Branch):
    name = "focal"
    gamma: float = 2.0
    weighting: Annotated[LgConfig | InverseConfig, Choice()] | None = None


class TverskyConfig(Branch):
    name = "tversky"
    alpha: float = 0.5
    beta: float = Field(default_factory=lambda above: 1 - above["alpha"])


class TrainingConfig(Settings):
    lr: float = 0.1
    epochs: int = 3
    shuffle: bool = True


class RootConfig(Settings):
    loss: Annotated[FocalConfig | TverskyConfig, Choice()] = TverskyConfig()
    training: TrainingConfig = TrainingConfig()
    weights: dict[str, float] = Field(default_factory=dict)
    sizes: tuple[int, ...] = ()


def problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        RootConfig.model_validate(values)
    return [str(problem) for problem in problems_of(caught.value, RootConfig)]


def test_a_choice_is_written_by_name_or_as_a_mapping() -> None:
    assert RootConfig.model_validate({"loss": "focal"}) == RootConfig(loss=FocalConfig())
    assert RootConfig.model_validate({"loss": {"focal": {"gamma": "2e-5"}}}).loss == FocalConfig(gamma=2e-5)
    assert RootConfig.model_validate({"loss": {"focal": None}}).loss == FocalConfig()


def test_flat_and_nested_forms() -> None:
    config = RootConfig(loss=FocalConfig(weighting=LgConfig(k=3)), weights={"a.b": 1}, sizes=(1, 2))
    assert flat(config) == {
        "loss": "focal",
        "loss.focal.gamma": 2.0,
        "loss.focal.weighting": "lg",
        "loss.focal.weighting.lg.k": 3.0,
        "training.lr": 0.1,
        "training.epochs": 3,
        "training.shuffle": True,
        "weights": {"a.b": 1.0},
        "sizes": [1, 2],
    }
    assert RootConfig.model_validate(nest(flat(config))) == config
    assert RootConfig.model_validate(nested(config)) == config
    assert set(flat(config)) <= set(paths(RootConfig))


UNKNOWN_BRANCH = "loss: must be one of the known names, got"
BRANCHES = "Known: focal, tversky."
BOOLEAN = "must not be true or false (quote YAML's words for them, such as 'no')"
YAML_WORDS = "since YAML reads yes, no, on and off as true or false"
SECTIONS = "Known: loss, training, weights, sizes."


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"loss": "focl"}, f"{UNKNOWN_BRANCH} focl; did you mean loss.focal? {BRANCHES}"),
        ({"loss": {"gamma": 1}}, f"{UNKNOWN_BRANCH} gamma; did you mean loss.focal.gamma? {BRANCHES}"),
        (
            {"loss": {"focal": {}, "tversky": {}}},
            "loss: must be one choice, and focal and tversky are chosen, got {'focal': {}, 'tversky': {}}",
        ),
        ({"loss": 3}, f"{UNKNOWN_BRANCH} 3. {BRANCHES}"),
        (
            {"loss": {"focal": {"alpha": 1}}},
            "loss.focal.alpha: is not a key; did you mean loss.tversky.alpha? Known: gamma, weighting.",
        ),
        ({"training": {"lr": True}}, f"training.lr: {BOOLEAN}, got True"),
        (
            {"training": {"epochs": "x"}},
            "training.epochs: must be a valid integer, unable to parse string as an integer, got 'x'",
        ),
        ({"training": {"lr": float("inf")}}, "training.lr: must be a finite number, got inf"),
        ({"weights": {"a": True}}, f"weights: {BOOLEAN}, got {{'a': True}}"),
        ({"traning": {}}, f"traning: is not a key; did you mean training? {SECTIONS}"),
        ({"lr": 1}, f"lr: is not a key; did you mean training.lr? {SECTIONS}"),
        ({"training": None}, "training: must be a section with keys, or be left out, got None"),
    ],
)
def test_a_problem_names_the_path_the_value_and_the_alternatives(values: dict[str, Any], problem: str) -> None:
    assert problems(values) == [problem]


def test_a_number_for_a_text_is_told_how_to_be_quoted() -> None:
    """A label 1 must be text, and a shell takes the first pair of quotes away; only yes and no were explained."""

    class LabelConfig(Settings):
        positive: str = "yes"

    with pytest.raises(ValidationError) as caught:
        LabelConfig.model_validate({"positive": 1})
    (problem,) = problems_of(caught.value, LabelConfig)
    assert str(problem) == "positive: must be a text: write the number in quotes (after --set, \"positive='1'\"), got 1"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "queries: must be a valid string, or a valid dictionary, got None"),
        ({"PER": None}, "queries.PER: must be a valid string, got None"),
        ({"str": None}, "queries.str: must be a valid string, got None"),
    ],
)
def test_a_setting_of_several_types_has_one_problem_at_its_own_path(value: object, problem: str) -> None:
    """The names of the types were a part of the path, and each type had a problem."""

    class QueriesConfig(Settings):
        queries: str | dict[str, str]

    with pytest.raises(ValidationError) as caught:
        QueriesConfig.model_validate({"queries": value})
    assert list(map(str, problems_of(caught.value, QueriesConfig))) == [problem]


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        (1, "write the number in quotes, as {'1': ...}, got the key 1"),
        (True, f"write the word in quotes, as {{'yes': ...}}, {YAML_WORDS}, got the key True"),
    ],
)
def test_a_key_that_is_no_text_is_told_how_to_be_quoted(key: object, advice: str) -> None:
    """The advice named a path that is none, `weights.1.[key]`: whoever followed it got another error."""

    class QueriesConfig(Settings):
        queries: str | dict[str, str] = ""

    assert problems({"weights": {key: 2}}) == [f"weights: must have texts as keys: {advice}"]
    with pytest.raises(ValidationError) as caught:
        QueriesConfig.model_validate({"queries": {key: "which people"}})
    assert f"queries: must have texts as keys: {advice}" in map(str, problems_of(caught.value, QueriesConfig))


def test_all_problems_come_at_once() -> None:
    lines = problems({"loss": {"focal": {"gama": 1, "weighting": "lgg"}}, "training": {"lr": "x"}, "nothing": 1})
    reported_paths = [line.partition(":")[0] for line in lines]
    assert reported_paths == ["loss.focal.weighting", "loss.focal.gama", "training.lr", "nothing"]


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        RootConfig().training.lr = 1.0  # type: ignore[misc]


FOCAL = {"loss": {"focal": {"gamma": 1}}}
WEIGHTED = {"loss": {"focal": {"weighting": {"lg": {"k": 2}}}}}
INVERSE = {"loss": {"focal": {"weighting": "inverse"}}}


@pytest.mark.parametrize(
    ("below", "above", "merged"),
    [
        (FOCAL, {"loss": "focal"}, FOCAL),
        (FOCAL, WEIGHTED, {"loss": {"focal": {"gamma": 1, "weighting": {"lg": {"k": 2}}}}}),
        (FOCAL, {"loss": "tversky"}, {"loss": {"tversky": {}}}),
        (WEIGHTED, INVERSE, {"loss": {"focal": {"weighting": {"inverse": {}}}}}),
        ({"training": {"lr": 1}}, {"training": {"epochs": 2}}, {"training": {"lr": 1, "epochs": 2}}),
        ({"training": {"lr": 1}}, {"training": {"lr": 2}}, {"training": {"lr": 2}}),
        ({"weights": {"a": 1, "b": 2}}, {"weights": {"b": 1}}, {"weights": {"a": 1, "b": 1}}),
        ({"weights": {"a": 1}}, {"weights": 1}, {"weights": 1}),
        ({}, {"unknown": {"x": 1}}, {"unknown": {"x": 1}}),
    ],
)
def test_layers_merge_within_a_branch_and_replace_across(
    below: dict[str, Any], above: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge(RootConfig, below, above) == merged


def test_nest_joins_a_branch_with_its_keys_in_any_order() -> None:
    expected = {"loss": {"focal": {"gamma": 2}}}
    assert nest({"loss": "focal", "loss.focal.gamma": 2}) == expected
    assert nest({"loss.focal.gamma": 2, "loss": "focal"}) == expected
    assert nest({"loss": "tversky", "loss.focal.gamma": 2}) == {"loss": {"tversky": {}, "focal": {"gamma": 2}}}


def test_nest_keeps_all_that_was_written_and_leaves_the_callers_values_alone() -> None:
    whole = {"training": {"epochs": 1}}
    both = {"training": {"epochs": 1, "lr": 0.5}}
    assert nest(whole | {"training.lr": 0.5}) == both
    assert nest({"training.lr": 0.5} | whole) == both
    assert nest({"loss.focal.gamma": 3, "loss": {"focal": {"alpha": 1}}}) == {
        "loss": {"focal": {"gamma": 3, "alpha": 1}}
    }
    assert whole == {"training": {"epochs": 1}}


numbers = st.floats(allow_nan=False, allow_infinity=False)
losses = st.one_of(
    st.builds(TverskyConfig, alpha=numbers),
    st.builds(FocalConfig, gamma=numbers, weighting=st.one_of(st.none(), st.builds(LgConfig, k=numbers))),
)


def test_scalars_of_numpy_become_those_of_python() -> None:
    """A plan could not be stored with them: `tune` and `ablate` took their repr, np.int64(16), for the value."""
    given = {
        "training.epochs": np.int64(2),
        "training.lr": np.float64(0.5),
        "weights": {np.str_("a"): np.float32(0.5), "b": [np.bool_(True), (np.int8(1),)]},
    }
    plain = nest(given)
    assert repr(plain) == "{'training': {'epochs': 2, 'lr': 0.5}, 'weights': {'a': 0.5, 'b': [True, (1,)]}}"
    with pytest.raises(ValidationError, match="must not be true or false"):
        TrainingConfig.model_validate({"lr": np.bool_(True)})


configs = st.builds(RootConfig, loss=losses, training=st.builds(TrainingConfig, lr=numbers))


@given(configs)
def test_both_forms_lead_back_to_the_same_configuration(config: RootConfig) -> None:
    assert RootConfig.model_validate(nest(flat(config))) == config
    assert RootConfig.model_validate(nested(config)) == config


@given(configs)
def test_the_non_defaults_lead_back_to_the_same_configuration(config: RootConfig) -> None:
    assert RootConfig.model_validate(nest(non_defaults(config))) == config


def test_the_non_defaults_hold_no_default() -> None:
    assert non_defaults(RootConfig()) == {}
    written = {"loss": "tversky", "loss.tversky.alpha": 0.3, "loss.tversky.beta": 0.7, "training.lr": 0.1}
    assert non_defaults(RootConfig.model_validate(nest(written))) == {"loss": "tversky", "loss.tversky.alpha": 0.3}
    other = RootConfig.model_validate(nest({**written, "loss.tversky.beta": 0.5}))
    assert non_defaults(other)["loss.tversky.beta"] == 0.5
