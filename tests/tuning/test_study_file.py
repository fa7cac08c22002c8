"""The file of a study: what is refused, the command that runs it, and the data that it needs."""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dice_ray
from dice_ray import api
from dice_ray.api.library import read_study
from dice_ray.api.presets import layers_of
from dice_ray.config.load import set_layer
from dice_ray.data import sources
from dice_ray.errors import ConfigError, DataError, InputError, UnknownNameError
from dice_ray.run.own_loss import settings_of, with_loss
from dice_ray.settings import nest
from dice_ray.tuning import plan_file, study_file
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.study_file import StudyFile, with_arms, with_draws
from search_spaces.draws import draws

PRESET = """
task: sentence_pair
data: {source: {files: {folder: ., train: train.tsv, reader: {tables: {quoting: false}}}}}
"""
STUDY = "BASELINE = 'a'\nARMS = {'a': {}, 'b': {'loss': 'dice'}}\n"


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("BASELINE = 'x'", r"must define ARMS and BASELINE, and .* lacks ARMS"),
        # It ran without its variants.
        (STUDY + "VARIANT = {'a': {}}", r"odd.py defines VARIANT, which no study has; did you mean VARIANTS\?"),
        *(
            # `constant predictor` was taken for the level that a useful arm must exceed.
            (f"BASELINE = 'a'\nARMS = {{'a': {{}}, {name!r}: {{}}}}", "and not that of a row of a report, got")
            for name in ("", "constant predictor", "dice (tuned threshold)")
        ),
        *(
            (f"BASELINE = 'a'\nARMS = {arms}", r"ARMS of .*odd\.py must map names")
            for arms in ("[]", "{'a': ['loss']}", "{'a': {}, 3: {}}", "{'a': {3: 1}}")
        ),
        (STUDY + "VARIANTS = ['a']", r"VARIANTS of .*odd\.py must map names to settings by path"),
        (STUDY + "SETTINGS = ['a']", r"SETTINGS of .*odd\.py must map names to settings by path"),
        (
            STUDY + "SETTINGS = VARIANTS = {'a': {}}",
            r"one of VARIANTS, SETTINGS and SPACE, .* VARIANTS and SE",
        ),
        (STUDY + "SPACE = 5", r"SPACE of .*odd\.py must be a function of a trial, as search spaces are, got 5"),
        (STUDY + "SPACES = {'b': print}", r"a study with SPACES, .* must define the SPACE of all arms, .*odd\.py"),
        (STUDY + "SPACE = print; SPACES = {'b': 1}", r"SPACES of .* must map names of arms to functions of a trial"),
        (STUDY + "DATA = 'mrpc'", r"DATA of .*odd\.py must be a list of names of presets, got 'mrpc'"),
        (STUDY + "DATA = 5", r"DATA of .*odd\.py must be a list of names of presets, got 5"),
        (STUDY + "BASELINE = ['a']", r"BASELINE of .*odd\.py must be the name of an arm, got \['a'\]"),
    ],
)
def test_what_is_no_study_is_refused(content: str, match: str) -> None:
    Path("odd.py").write_text(content)
    with pytest.raises(InputError, match=match):
        read_study("odd.py")


SPACED = """
def space(trial):
    trial.suggest_float("training.lr", 1e-3, 4e-3, log=True)

def of_dice(trial):
    trial.suggest_float("loss.dice.gamma", 1e-3, 4e-3, log=True)

SPACE = space
SPACES = {"b": of_dice}
"""


def drawn(num: int | None, *, crossed: bool = False, budget: int | None = None, seeds: int | None = None) -> StudyFile:
    Path("spaced.py").write_text(STUDY + SPACED)
    return with_draws("spaced.py", read_study("spaced.py"), draws, num, budget, seeds, crossed=crossed)


def test_settings_are_drawn_for_all_arms_and_those_of_one_arm_beside_them() -> None:
    """With the same seed for both, the arm would have its highest gamma at the highest learning rate."""
    six, nine = drawn(6), drawn(9)
    assert (len(six.variants), six.budget, six.variants_are) == (6, 4, "settings")
    assert [*six.seeds.items()][:2] == [("01", 1), ("02", 2)]
    assert {name: nine.variants[name] for name in six.variants} == six.variants
    assert {name: nine.own[name] for name in six.variants} == six.own
    assert {arm for own in six.own.values() for arm in own} == {"b"}
    shared, own = (
        [values["training.lr"] for values in six.variants.values()],
        [values["b"]["loss.dice.gamma"] for values in six.own.values()],
    )
    assert np.argsort(shared).tolist() != np.argsort(own).tolist()
    crossed = drawn(6, crossed=True, seeds=3)
    assert (crossed.variants, crossed.seeds, crossed.budget) == (six.variants, {}, None)
    assert len(drawn(None).variants) == 30


def test_spaces_may_be_given_by_their_names_and_the_study_keeps_where_they_are() -> None:
    """Finds names that only a module of ours can load, and plans that do not say what was searched."""
    Path("named.py").write_text(STUDY + "SPACE = 'optimizer_tuning'\nSPACES = {'b': 'loss_tuning:dice'}\n")
    file = with_draws("named.py", read_study("named.py"), draws, 5, None, None, crossed=False)
    assert file.addresses == {
        "": "search_spaces.optimizer_tuning:optimizer_tuning",
        "b": "search_spaces.loss_tuning:dice",
    }
    assert {path for own in file.own.values() for path in own["b"]} >= {"loss.dice.gamma", "loss.dice.denominator"}
    assert drawn(5).addresses.keys() == {"", "b"}
    Path("wrong.py").write_text(STUDY + "SPACE = 'optimiser_tuning'\n")
    with pytest.raises(UnknownNameError, match="no space named 'optimiser_tuning'"):
        read_study("wrong.py")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"num": 4}, "--settings must be more than --budget, and both at least 1, got 4 and 4"),
        ({"num": 9, "budget": 0}, "--settings must be more than --budget, and both at least 1, got 9 and 0"),
        ({"num": 0, "crossed": True}, "--settings must be more than --budget, and both at least 1, got 0"),
        ({"num": 9, "seeds": 5}, r"--seeds is for spaced\.py with --crossed, got 5"),
    ],
)
def test_numbers_of_settings_that_do_not_fit_are_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        drawn(**given)


@pytest.mark.parametrize(("option", "value"), [("settings", 20), ("budget", 2), ("crossed", True)])
def test_options_of_drawn_settings_need_a_space(option: str, value: int) -> None:
    """They were ignored by a study of one setting, which then said nothing of a search."""
    given = {"num": None, "budget": None, "crossed": False, {"settings": "num"}.get(option, option): value}
    with pytest.raises(InputError, match=f"--{option} is for a study with a SPACE, which mining does not define"):
        with_draws("mining", read_study("mining"), draws, given["num"], given["budget"], None, crossed=given["crossed"])  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"again": True}, {"until_settled": True}, {"care": 1.0}, {"threshold": "tuned"}])
def test_what_a_verdict_over_seeds_asks_for_is_refused_over_settings(given: dict[str, Any]) -> None:
    """The control has other seeds: the settings were taken for crossed ones, and most of the runs were left out."""
    Path("spaced.py").write_text(STUDY + SPACED)
    with pytest.raises(InputError, match=f"at equal tuning budget, over settings: give no {next(iter(given))}$"):
        dice_ray.ablate("spaced.py", **given)


@pytest.mark.parametrize("draws", [SPACED, "SETTINGS = {str(lr): {'training.lr': lr} for lr in (1e-3, 2e-3)}"])
@pytest.mark.parametrize("settings", [["training.lr=1e-4"], {"training": {"lr": 1e-4}}])
def test_a_setting_that_every_draw_overrides_is_refused(
    draws: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study ran without it, and without a word."""
    monkeypatch.setattr("dice_ray.api.study.run_plan", lambda plan, driver, *, is_dry: None)
    Path("drawn.py").write_text(STUDY + draws)
    dice_ray.ablate("drawn.py", settings=["training.epochs=1"])
    with pytest.raises(
        ConfigError, match=r"training\.lr: must not be set: the study drawn\.py searches it; leave it out"
    ):
        dice_ray.ablate("drawn.py", settings=settings)


def test_an_arm_searches_no_parameter_of_the_shared_space() -> None:
    """Its draws would replace the shared ones, and the arms would not be compared at the same settings."""
    Path("both.py").write_text(STUDY + SPACED.replace("of_dice}", "space}"))
    with pytest.raises(InputError, match=r"the space of arm b of both\.py must leave training\.lr to SPACE"):
        with_draws("both.py", read_study("both.py"), draws, None, None, None, crossed=False)
    Path("other.py").write_text(STUDY + SPACED.replace('"b":', '"c":'))
    with pytest.raises(UnknownNameError, match="no arm for SPACES named 'c'"):
        read_study("other.py")


def test_names_of_ones_own_are_allowed_in_a_study() -> None:
    Path("own.py").write_text(STUDY + "LOSSES = ['dice']\n")
    assert read_study("own.py").baseline == "a"


def test_the_command_of_a_study_means_the_settings_that_were_given() -> None:
    """A text such as "1" or "null" was written without quotes: read back, it was a number or nothing."""
    settings: dict[str, Any] = {
        "task.sentence_pair.positive": "1",
        "tracking.data": "null",
        "tracking.text": "no # é 😀: [",
        "training.lr": "2e-5",
        "training.warmup": 1e-05,
        "launch.gpus": None,
        "data.source": {"files": {"folder": "$DATA/a b", "reader": {"tables": {"quoting": False, "header": "0"}}}},
    }
    words = shlex.split(study_file.command_of("loss_comparison", {"--data": ["mrpc"], "--set": settings}))
    written = [word for option, word in pairwise(words) if option == "--set"]
    assert "training.lr=2e-5" in written, "no quotes where none are needed"
    assert set_layer(written).values == nest(settings)
    assert set_layer(list(with_loss(written, "my #1.py:loss"))).values == nest({**settings, "loss": "my #1.py:loss"})


def test_scalars_of_numpy_in_settings_can_be_stored(tmp_path: Path) -> None:
    """A run was trained with them; a study's plan, its file with an own loss and its command could not have them."""
    scalars = {"training.lr": np.float64(0.5), "training.batch_size": np.int64(16)}
    arms = "{'a': {}, 'b': {'training.lr': np.float32(0.25)}}"
    (tmp_path / "rates.py").write_text(
        f"import numpy as np\nBASELINE = 'a'\nARMS = {arms}\nVARIANTS = {{'v': {{'training.epochs': np.int64(3)}}}}"
    )
    file = read_study(
        with_arms("rates", read_study(str(tmp_path / "rates.py")), {"mine": settings_of(torch.nn.CrossEntropyLoss())})
    )
    assert repr((file.arms["b"], file.variants)) == "({'training.lr': 0.25}, {'v': {'training.epochs': 3}})"
    plan = StudyPlan(name="s", layers=layers_of("synthetic_pairs", scalars), arms=file.arms, baseline="a", seeds=(1,))
    assert plan.base().training.batch_size == 16
    assert {cell.arm for cell in plan.grid().cells} == {"a", "b", "mine"}
    assert plan_file.store(plan, tmp_path / "study") == plan_file.read(tmp_path / "study")
    command = study_file.command_of("rates.py", {"--data": [], "--set": scalars})
    assert command == "dice-ray ablate rates.py --set training.lr=0.5 --set training.batch_size=16"


def test_a_study_needs_a_test_split(tmp_path: Path) -> None:
    rows = [f"a {number}\tb\t{number % 2}" for number in range(40)]
    (tmp_path / "train.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]))
    (tmp_path / "mine.yaml").write_text(PRESET)
    with pytest.raises(DataError, match=r"a study compares on the test split, and .* none .*data\.test_share=0\.2"):
        dice_ray.ablate("loss_comparison", "mine.yaml")


def test_a_study_needs_two_items_of_each_class_where_each_is_scored(tmp_path: Path) -> None:
    """With one positive in dev, a threshold is fitted to it, and F1 is 0 or 1 by chance."""
    rows = [f"a {number}\tb\t{int(number % 20 == 0)}" for number in range(200)]
    (tmp_path / "train.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]))
    (tmp_path / "mine.yaml").write_text(PRESET)
    with pytest.raises(DataError, match=r"at least 2 items of each class in dev, as f1 .* 1 of '1' among 16 records"):
        study_file.check_test(api.validate("mine.yaml", {"data.test_share": 0.2}))
    config = api.validate("mine.yaml", {"data.test_share": 0.4, "data.dev_share": 0.4})
    study_file.check_test(config)
    splits = sources.load(config.data)
    assert [Counter(record.label for record in split)["1"] for split in (splits.dev, splits.test)] == [2, 4]
