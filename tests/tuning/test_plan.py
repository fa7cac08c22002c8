"""Plans: stored and read again, cells by their identity, the demand of a trial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pytest

from dice_ray.config.load import Layer, as_yaml, read_layer, resolve, set_layer, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, InputError, RunError, UnknownNameError
from dice_ray.settings import Branch, Choice, Settings
from dice_ray.tasks.text_classification import SentencePairConfig
from dice_ray.tuning.addresses import address_paths
from dice_ray.tuning.cells import Variant, identity
from dice_ray.tuning.ledger import TrialSpec
from dice_ray.tuning.looks import with_control_again
from dice_ray.tuning.plan import quickest_and_slowest
from dice_ray.tuning.plan_file import read, store
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from dice_ray.user_code import Address

LAYERS = (values_layer("preset", {"task": "sentence_pair", "data.source": "synthetic", "training.epochs": 1}),)
SWEEP = SweepPlan(name="sweep", layers=LAYERS, space="search_spaces.loss_tuning:loss_tuning", trials=4)


def study(**changes: Any) -> StudyPlan:
    arms = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal", "loss.focal.gamma": 1}}
    return StudyPlan(**({"name": "study", "layers": LAYERS, "arms": arms, "baseline": "ce", "seeds": (1, 2)} | changes))


@pytest.mark.parametrize("plan", [SWEEP, study()])
def test_a_plan_is_read_as_it_was_stored(tmp_path: Path, plan: SweepPlan | StudyPlan) -> None:
    store(plan, tmp_path)
    store(plan, tmp_path)
    assert read(tmp_path) == plan


def test_the_seeds_of_reruns_are_seeds_of_a_run_too() -> None:
    """The trials ran, and neither `predict` nor `export-preset` took the seed."""
    last = SWEEP.model_copy(update={"seed": 2**31 - 10_001, "seeds": 1000})
    assert resolve([*LAYERS, values_layer("rerun", {"training.seed": max(last.rerun_seeds())})]).training.seed
    with pytest.raises(ConfigError, match="seed: must be less than 2147473648, got 3000000000"):
        SweepPlan.checked(**SWEEP.model_dump() | {"seed": 3_000_000_000})


def test_a_sweep_is_written_once(tmp_path: Path) -> None:
    store(SWEEP, tmp_path)
    slower = (*LAYERS, values_layer("--set", {"training.lr": 1e-5}))
    others: list[tuple[SweepPlan | StudyPlan, str]] = [
        (
            SWEEP.model_copy(update={"trials": 1, "seed": 5}),
            "; changed: seed 0 then, 5 now; changed: trials 4 then, 1 now",
        ),
        (SWEEP.model_copy(update={"layers": slower}), "; changed: training.lr 3e-05 then, 1e-05 now"),
        (study(), ""),
        (study(variants=varied()), ""),
    ]
    for other, changed in others:
        with pytest.raises(RunError, match=rf"holds another sweep of that name \(of preset{changed}\)"):
            store(other, tmp_path)
    assert read(tmp_path) == SWEEP
    more = SWEEP.model_copy(update={"trials": SWEEP.trials + 32, "trial_timeout": 60})
    assert store(more, tmp_path) == more == read(tmp_path)
    elsewhere = more.model_copy(update={"layers": tuple(replace(each, origin="elsewhere") for each in more.layers)})
    assert store(elsewhere, tmp_path) == elsewhere, "where a setting is written is told, and means nothing"
    parts = (
        set_layer(["training.epochs=1e0", "data.source=synthetic"]),
        values_layer("preset", {"task": "sentence_pair"}),
    )
    otherwise = elsewhere.model_copy(update={"layers": parts})
    assert store(otherwise, tmp_path) == otherwise, "nor does it mean anything in how many places, or how a number is"
    spelled = otherwise.model_copy(update={"layers": (*parts, set_layer(["training.weight_decay=0.01"]))})
    with pytest.raises(RunError, match="changed: the same settings, with other defaults written out"):
        store(spelled, tmp_path)


def test_a_study_grows_by_arms_and_seeds_alone(tmp_path: Path) -> None:
    store(study(), tmp_path)
    store(study(seeds=(1, 2, 3), arms=study().arms | {"dice": {"loss": "dice"}}), tmp_path)
    assert isinstance(there := read(tmp_path), StudyPlan)
    assert (there.seeds, list(there.arms)) == ((1, 2, 3), ["ce", "focal", "dice"])
    assert store(study(seeds=(4, 1), arms={"ce": {"loss": "cross_entropy"}}), tmp_path) == read(tmp_path)
    assert isinstance(there := read(tmp_path), StudyPlan)
    assert (there.seeds, list(there.arms)) == ((1, 2, 3, 4), ["ce", "focal", "dice"])
    store(with_control_again(study()), tmp_path / "controlled")
    with pytest.raises(RunError, match="baseline ce then, which has a control, focal now"):
        store(study(baseline="focal"), tmp_path / "controlled")
    with pytest.raises(ConfigError, match=r"arms.renamed: must differ from arm ce"):
        store(study(arms={"renamed": {"loss": "cross_entropy"}}, baseline="renamed"), tmp_path)
    for changes in (
        {"arms": study().arms | {"focal": {"loss": "focal"}}},
        {"layers": (*LAYERS, Layer("--set", {"training": {"lr": 1}}))},
        {"layers": (*LAYERS, Layer("--set", {"training": {"lr": 1}})), "digest": "other data"},
        {"layers": (*LAYERS, Layer("--set", {"training": {"lr": 1}})), "arms": {"other": {}}, "baseline": "other"},
    ):
        with pytest.raises(RunError, match="holds another study"):
            store(study(**changes), tmp_path)


def test_the_start_of_a_study_resolves_each_arm_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolution takes milliseconds: one for each cell, or for each time that the grid is read, would be felt."""
    resolved = []

    def counted(layers: Sequence[Layer]) -> RunConfig:
        resolved.append(layers)
        return resolve(layers)

    for module in [module for name, module in sys.modules.items() if name.startswith("dice_ray.")]:
        if getattr(module, "resolve", None) is resolve:
            monkeypatch.setattr(module, "resolve", counted)
    arms = {f"focal_{tenths}": {"loss": "focal", "loss.focal.gamma": tenths / 10} for tenths in range(101, 130)}
    plan = study(arms=arms, baseline="focal_101", seeds=range(1, 11)).with_contents()
    stored = store(store(plan, tmp_path), tmp_path)
    assert isinstance(stored, StudyPlan)
    grid = stored.grid()
    assert (len(grid.cells), grid.left_out) == (290, [])
    assert 0 < len(resolved) <= len(arms) + 1, "one of each arm, and one of the layers below the arms"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    weights = tmp_path / "encoder" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"first")
    return weights


def test_a_study_is_bound_to_the_content_of_an_encoder(tmp_path: Path, weights: Path) -> None:
    arms = {"tiny": {}, "ours": {"model.encoder": str(weights.parent)}}
    plan = study(arms=arms, baseline="tiny")
    first = plan.with_contents()
    assert list(first.encoders) == [str(weights.parent)]
    assert first.identity("tiny", 1) == plan.identity("tiny", 1)
    assert first.with_contents() == first
    store(first, tmp_path)
    needs_no_other = study(arms={"tiny": {}}, baseline="tiny").with_contents()
    of_tiny = store(needs_no_other, tmp_path)
    assert isinstance(of_tiny, StudyPlan)
    assert of_tiny.identity("ours", 1) == first.identity("ours", 1), "its cells are not run again"
    weights.write_bytes(b"second")
    second = plan.with_contents()
    assert second.identity("tiny", 1) == first.identity("tiny", 1)
    assert second.identity("ours", 1) != first.identity("ours", 1)
    for plan in (second, first):  # the same call again, and `resume`
        with pytest.raises(
            RunError, match=r"the encoder that it was started with, and .*/encoder was changed \(digest"
        ):
            store(plan, tmp_path)
    assert store(needs_no_other, tmp_path) == of_tiny


def test_a_sweep_is_bound_to_the_content_of_its_encoder(tmp_path: Path, weights: Path) -> None:
    layers = (*LAYERS, values_layer("--set", {"model.encoder": str(weights.parent)}))
    plan = SWEEP.model_copy(update={"layers": layers})
    store(plan, tmp_path)  # by an earlier version
    bound = store(plan.with_contents(), tmp_path)
    assert list(bound.encoders) == [str(weights.parent)]
    weights.write_bytes(b"second")
    with pytest.raises(RunError, match=r"the encoder that it was started with, and .*/encoder was changed \(digest"):
        store(bound, tmp_path)


def test_an_arm_that_was_tuned_stays_so_when_the_study_goes_on_without_it(tmp_path: Path) -> None:
    store(study(tuned={"ce": "sweep 0001, best of 3", "focal": "sweep 0002, best of 4"}), tmp_path)
    there = store(study(arms={"ce": study().arms["ce"]}, tuned={"ce": "later 0001, best of 9"}), tmp_path)
    assert isinstance(there, StudyPlan)
    assert there.tuned == {"ce": "later 0001, best of 9", "focal": "sweep 0002, best of 4"}


@pytest.mark.parametrize("plan", [SWEEP, study()])
def test_a_plan_stays_on_its_data(tmp_path: Path, plan: SweepPlan | StudyPlan) -> None:
    begun = plan.bound_to({None: "2ee5"})
    assert store(begun, tmp_path).bound_to({None: "2ee5"}) == read(tmp_path) == begun
    told = r"must have the data that it was started on, and they were changed \(digest 2ee5 then, 77aa now\)"
    with pytest.raises(RunError, match=told):
        store(plan.bound_to({None: "77aa"}), tmp_path)
    with pytest.raises(RunError, match=told):
        read(tmp_path).bound_to({None: "77aa"})
    assert read(tmp_path) == begun


def test_a_folder_of_a_single_run_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    with pytest.raises(RunError, match="holds a run trained alone: choose another --name"):
        store(SWEEP, tmp_path)
    assert not (tmp_path / "plan.yaml").exists()


def test_what_is_not_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=f"no sweep or study named {tmp_path.name!r}"):
        read(tmp_path)
    for text, told in (
        ("kind: sweep\nname: x\n", ["layers: must be given", "space: must be given", "trials: must be given"]),
        ("kind: [sweep]\n", ["kind: must be sweep or study, got ['sweep']"]),
        ("", ["kind: must be sweep or study, got None"]),
        ("kind: &a {a: *a}\n", ["kind: must be sweep or study, got {'a': {...}}"]),
        ("kind: sweep\nname: 2024-13-45\n", ["it must be YAML in UTF-8: month must be in 1..12"]),
        ("kind: [sweep", ["it must be YAML in UTF-8: while parsing a flow sequence"]),
    ):
        (tmp_path / "plan.yaml").write_text(text)
        with pytest.raises(RunError) as caught:
            read(tmp_path)
        head, *lines = str(caught.value).splitlines()
        assert head.startswith(f"{tmp_path}/plan.yaml must be a plan as this version of dice_ray writes it: correct it")
        assert len(lines) == len(told)
        assert all(line.startswith(f"  {start}") for line, start in zip(lines, told, strict=True))


def test_the_problems_of_an_edited_plan_are_told_by_their_paths(tmp_path: Path) -> None:
    store(SWEEP, tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(
        path.read_text().replace("trials: 4", "trials: 0\ntrails: 8").replace("origin: preset", "origin: [a]")
    )
    with pytest.raises(RunError) as caught:
        read(tmp_path)
    assert str(caught.value).splitlines()[1:] == [
        "  layers.0.origin: must be a valid string, got ['a']",
        "  trials: must be greater than or equal to 1, got 0",
        f"  trails: is not a key; did you mean trials? Known: {', '.join(SweepPlan.model_fields)}.",
    ]
    path.write_text("kind: sweep\n" + "".join(f"key{number}: 1\n" for number in range(9)))
    with pytest.raises(RunError, match=r"(?s)key0: is not a key.*\n  and 8 more$"):
        read(tmp_path)
    store(SWEEP, tmp_path / "other")
    changed = (tmp_path / "other/plan.yaml").read_text().replace("trials: 4", "trials: 5")
    (tmp_path / "other/plan.yaml").write_text(changed)
    with pytest.raises(RunError, match=r"plan\.yaml must be as dice_ray wrote it.*delete its first line"):
        read(tmp_path / "other")
    (tmp_path / "other/plan.yaml").write_text(changed.partition("\n")[2])
    assert read(tmp_path / "other") == SWEEP.model_copy(update={"trials": 5})


def test_a_cell_is_what_it_runs_not_its_name_nor_how_it_is_written_nor_where_it_runs() -> None:
    ids = [cell.id for cell in study().grid().cells]
    assert len(set(ids)) == 4
    renamed = {"base": {"loss": {"cross_entropy": {}}}, "f": {"loss": "focal", "loss.focal.gamma": "1e0"}}
    elsewhere = (*LAYERS, values_layer("--set", {"launch.threads": 2}))
    assert [cell.id for cell in study(arms=renamed, baseline="base", layers=elsewhere).grid().cells] == ids
    assert not set(ids) & {cell.id for cell in study(digest="other data").grid().cells}


def test_a_control_with_other_seeds_takes_no_cell_from_the_arms_and_variants_after_it() -> None:
    """Its seeds became those of all later cells, which no arm has: only the first data set was compared."""
    plan = with_control_again(study(variants=varied()))
    plan = plan.model_copy(update={"arms": plan.arms | {"dice": {"loss": "dice"}}})
    cells = [(cell.variant, cell.arm, cell.seed) for cell in plan.grid().cells]
    of_arms = product(plan.variants, ("ce", "focal", "dice"), plan.seeds)
    of_control = product(plan.variants, ("control_again",), (10_001, 10_002))
    assert sorted(cells) == sorted((*of_arms, *of_control))


def test_cells_run_again_where_their_numbers_would_be_others_now(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {cell.id for cell in study().grid().cells}
    monkeypatch.setattr("dice_ray.tuning.cells.RESULTS_VERSION", 0)
    assert not before & {cell.id for cell in study().grid().cells}


def test_cells_in_half_precision_run_again_whose_heads_were_rounded() -> None:
    assert identity({"training.precision": "fp32"}, {}, "") == "f35a04640801"
    assert identity({"training.precision": "bf16"}, {}, "") != "2c0e518e0893"


def test_arms_that_run_the_same_or_cannot_run_are_all_named() -> None:
    arms = study().arms | {
        "same": {"training.epochs": "1"},
        "wrong": {"loss.focal.gama": 1},
        "odd": {"training.lr": {1e-3}},
        "wide": {"launch.workers": 2},
        "seeded": {"training": {"seed": 7}},
    }
    with pytest.raises(ConfigError) as error:
        study(arms=arms, baseline="none").grid()
    said = str(error.value)
    for part in (
        "arms.same: must differ from arm ce",
        "loss.focal.gama",
        "from arm wrong",
        "training.lr: must be a number, text, list or mapping of such, got {0.001} (from arm odd)",
        "launch.workers: must not be set: launch belongs to the preset or --set",
        "from arm wide",
        "training.seed: must not be set: --seeds sets it for every trial (from arm seeded)",
        "baseline: must be an arm",
    ):
        assert part in said


def test_the_seed_of_the_layers_would_be_lost_and_is_refused() -> None:
    layers = (*LAYERS, values_layer("--set", {"training.seed": 3}))
    with pytest.raises(ConfigError, match=r"must not be set: --seed sets it .*from --set"):
        SWEEP.model_copy(update={"layers": layers}).base()
    with pytest.raises(ConfigError, match=r"must not be set: --seeds sets it .*from --set"):
        study(layers=layers).grid()


OWN_SPLITS = (
    values_layer(
        "preset",
        {
            "task": "sentence_pair",
            "data.source.files.train": "a.tsv",
            "data.source.files.reader.tables.quoting": False,
            "data.test_share": 0.2,
        },
    ),
)


def test_where_a_test_split_is_drawn_each_seed_draws_its_own_the_same_for_all_arms() -> None:
    plan = study(layers=OWN_SPLITS)
    configs = [plan.config(cell) for cell in plan.grid().cells]
    assert [(each.training.seed, each.data.split_seed) for each in configs] == [(1, 1), (1, 1), (2, 2), (2, 2)]
    assert {each.tags()["dice_ray.test_per_train"] for each in configs} == {f"{0.2 / 0.8 / 0.9:g}"}
    with_dev = (*OWN_SPLITS, values_layer("--set", {"data.source.files.dev": "b.tsv", "data.test_share": 0.5}))
    assert study(layers=with_dev).base().tags()["dice_ray.test_per_train"] == "1"
    taken_back = study(layers=(*OWN_SPLITS, values_layer("--set", {"data.test_share": None})))
    assert {taken_back.config(cell).data.split_seed for cell in taken_back.grid().cells} == {0}
    latest = study(
        layers=(*OWN_SPLITS, values_layer("--set", {"data.source.files.reader.tables.quoting": False, "data.time": 0}))
    )
    drawn = [latest.config(cell) for cell in latest.grid().cells]
    assert {(each.data.split_seed, each.tags().get("dice_ray.test_per_train")) for each in drawn} == {(0, None)}
    with pytest.raises(ConfigError, match=r"data\.split_seed: must not be set: --seeds sets it .*from --set"):
        study(layers=(*OWN_SPLITS, values_layer("--set", {"data.split_seed": 3}))).grid()
    for path in ("data.split_seed", "data.test_share", "data.time", "data.groups"):
        with pytest.raises(ConfigError, match=rf"{path}: must not be set: .*from arm focal"):
            study(
                layers=OWN_SPLITS, arms=study().arms | {"focal": {path: 3 if path != "data.test_share" else 0.3}}
            ).grid()


def test_each_seed_draws_its_own_few_positives_the_same_for_all_arms() -> None:
    """Finds a study whose seeds all train on the same positives: it would say nothing of others."""
    plan = study(layers=(*LAYERS, values_layer("--set", {"data.imbalance.few_positives.positives": 20})))
    assert [plan.config(cell).data.split_seed for cell in plan.grid().cells] == [1, 1, 2, 2]
    for few in ({"data.imbalance.few_positives.positives": 20}, {"data.imbalance": "few_positives"}):
        with pytest.raises(ConfigError, match=r"data\.imbalance\.few_positives: must not be set: .*from arm few"):
            study(arms=study().arms | {"few": few}).grid()


def test_a_test_split_that_is_there_is_not_drawn_again() -> None:
    named = (*OWN_SPLITS, values_layer("--set", {"data.source.files.test": "b.tsv"}))
    for layers in (named, (*LAYERS, values_layer("--set", {"data.test_share": 0.2}))):
        with pytest.raises(ConfigError, match=r"data\.test_share: must be left out: data\.source has a test split"):
            study(layers=layers).grid()


def test_a_configuration_that_is_the_quickest_and_the_slowest_is_tried_once() -> None:
    """A dry run summed its time twice."""
    configs = [resolve([*LAYERS, set_layer([f"training.epochs={epochs}"])]) for epochs in (3, 1, 2)]
    assert [each.training.epochs for each in quickest_and_slowest(configs)] == [1, 3]
    assert quickest_and_slowest(configs[:1]) == configs[:1]


def test_the_stored_configuration_of_a_run_is_a_preset_for_sweeps_and_studies(tmp_path: Path) -> None:
    run = resolve([*LAYERS, values_layer("--set", {"training.seed": 3, "launch.threads": 2, "loss": "dice"})])
    (tmp_path / "config.yaml").write_text(as_yaml(run))
    layers = (read_layer(tmp_path / "config.yaml"),)
    cells = study(layers=layers).grid().cells
    configs = [study(layers=layers).config(cell) for cell in cells]
    assert [config.training.seed for config in configs] == [1, 1, 2, 2]
    assert {config.launch.threads for config in configs} == {2}
    assert [cell.id for cell in cells] == [
        cell.id for cell in study(layers=(layers[0], values_layer("--set", {}))).grid().cells
    ]
    assert (
        SWEEP.model_copy(update={"layers": layers}).config(TrialSpec(id="0001", params={}, seed=7)).training.seed == 7
    )


@pytest.mark.parametrize("params", [{"launch.workers": 2}, {"training.seed": 3}])
def test_a_trial_writes_neither_its_workers_nor_its_seed(params: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"must not be set: .* \(from trial\)"):
        SWEEP.config(TrialSpec(id="0001", params=params, seed=0))


ALTERED = {name: {"data.imbalance": name} for name in ("none", "add_positive", "drop_negative")}


def varied(**written: dict[str, Any]) -> dict[str, Variant]:
    """Variants by what they write over the layers."""
    return {
        name: Variant(layers=(*LAYERS, values_layer(f"variant {name}", values)), digest=f"digest of {name}")
        for name, values in (written or ALTERED).items()
    }


@pytest.mark.parametrize(
    ("plan", "variant", "known"),
    [(SWEEP, "a", "none"), (study(), "a", "none"), (study(variants=varied()), "a", "'none', 'add_positive', 'dr")],
)
def test_a_trial_of_another_plan_is_refused(plan: SweepPlan | StudyPlan, variant: str, known: str) -> None:
    """Its line is in the ledger if a file was copied from the folder of another study."""
    with pytest.raises(InputError, match=f"trial 0001: its variant must be .*, got {variant!r}; known: {known}"):
        plan.config(TrialSpec(id="0001", params={}, seed=0, arm="ce", variant=variant))


def test_cells_of_variants_are_what_their_layers_and_data_make_of_the_arms() -> None:
    plan = study(variants=varied())
    cells = plan.grid().cells
    assert [(cell.seed, cell.variant, cell.arm) for cell in cells[:4]] == [
        (1, "none", "ce"),
        (1, "none", "focal"),
        (1, "add_positive", "ce"),
        (1, "add_positive", "focal"),
    ]
    assert len({cell.id for cell in cells}) == len(cells) == 12
    assert [plan.config(cell).data.imbalance.name for cell in cells[:6:2]] == list(ALTERED)
    ids = {cell.id for cell in cells}
    moved = plan.with_digests({**plan.digests, "none": "other data"})
    assert {cell.variant for cell in moved.grid().cells if cell.id not in ids} == {"none"}
    assert cells[0].name == "none/ce/1"
    assert cells[0].id == study(digest="digest of none").grid().cells[0].id, (
        "what is run decides, not what it is called"
    )


def test_a_study_grows_by_variants_and_stays_on_the_data_of_each(tmp_path: Path) -> None:
    two, three = ({name: varied()[name] for name in list(ALTERED)[:size]} for size in (2, 3))
    first = study(variants=two, digest="below")
    store(first, tmp_path)
    grown = store(study(variants=three, digest="below"), tmp_path)
    assert grown == read(tmp_path)
    assert isinstance(grown, StudyPlan)
    assert {cell.id for cell in first.grid().cells} < {cell.id for cell in grown.grid().cells}
    assert isinstance(smaller := store(first, tmp_path), StudyPlan)
    assert smaller.variants == grown.variants, "what is stored is never lost"
    assert smaller.grid().cells == first.grid().cells, "and runs only where it is asked for"
    changed = first.with_digests({"none": "digest of none", "add_positive": "changed"})
    with pytest.raises(
        RunError, match=r"study on add_positive must have the data .* \(digest digest of add_positive then"
    ):
        store(changed, tmp_path)
    for other in (study(), study(variants={"none": varied()["drop_negative"]})):
        with pytest.raises(RunError, match="holds another study"):
            store(other, tmp_path)


def test_variants_that_run_the_same_or_cannot_be_compared_are_all_named() -> None:
    written = {"none": {}, "same": {"training.epochs": 1}}
    variants = varied(
        **written,
        wide={"launch.workers": 2},
        other={"task": "text_classification", "data.source.synthetic.kind": "texts"},
        wrong={"data.imbalance": "ad_positive"},
        seeded={"training.seed": 3},
    )
    with pytest.raises(ConfigError) as error:
        study(variants=variants).with_digests(dict.fromkeys(variants, "one")).grid()
    said = str(error.value)
    for part in (
        "variants.same/ce: must differ from none/ce",
        "variants.wide: must have the launch of the layers below all variants, workers=1",
        "variants.other: must have the metric of the layers below all variants, f1, got accuracy",
        "data.imbalance: must be one of the known names, got ad_positive (from variant wrong)",
        "training.seed: must not be set: --seeds sets it for every trial (from variant seeded)",
    ):
        assert said.count(part) == 1, "each once, though every arm of the variant has it"


def test_what_the_driver_reads_from_the_layers_below_is_that_of_every_cell() -> None:
    """An arm with a score of its own was ranked by it and stored under the name of the study's."""
    own = {"task.sentence_pair.score": "accuracy"}
    with pytest.raises(ConfigError, match=r"task: must keep the metric .*, f1, got accuracy \(from arm other\)"):
        study(arms=study().arms | {"other": own}).grid()
    with pytest.raises(ConfigError, match=r"variants.one: must have the metric .*, f1, got accuracy"):
        study(variants=varied(one=own, two=own)).grid()
    with pytest.raises(ConfigError, match=r"variants.one: must have the launch of the layers below all variants"):
        study(variants=varied(one={"launch.threads": 2}, two={"launch.threads": 2})).grid()


def test_an_arm_that_does_not_go_with_a_task_is_left_out_unless_it_is_the_baseline(tmp_path: Path) -> None:
    arms = study().arms | {"asymmetric": {"loss": "asymmetric"}}
    plan = study(arms=arms, variants=varied(softmax={}, sigmoid={"task.sentence_pair.link": "sigmoid"}))
    (left_out,) = plan.grid().left_out
    assert str(left_out).startswith(
        "left out: asymmetric on softmax, because loss: must take the softmax link of task sentence_pair"
    )
    assert sum(cell.arm == "asymmetric" for cell in plan.grid().cells) == 2
    assert len(plan.grid().cells) == 10
    assert store(plan, tmp_path) == store(plan, tmp_path) == plan, "a study with an arm left out goes on"
    with pytest.raises(ConfigError, match="must take the softmax link"):
        study(arms=arms, baseline="asymmetric").grid()
    with pytest.raises(ConfigError, match=r"loss\.focal\.gama"):
        study(arms=arms | {"typo": {"loss.focal.gama": 1}}).grid()


def test_an_own_metric_of_any_task_has_an_absolute_address() -> None:
    """The paths were listed: that of another task stayed relative, and was lost where a plan was resumed elsewhere."""

    class Third(Branch):
        name = "third"
        measure: Address = "f1"

    class Configuration(Settings):
        task: Annotated[SentencePairConfig | Third, Choice()]

    of_pairs, of_texts = (
        {f"task.{task}.score", f"task.{task}.decision.own.function"}
        for task in ("sentence_pair", "text_classification")
    )
    assert address_paths(Configuration) == of_pairs | {"task.third.measure"}
    assert address_paths() == of_pairs | of_texts | {"loss.custom.target"}
