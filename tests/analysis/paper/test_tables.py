"""The paper's tables with ours beside: our arms in the printed rows, the others in rows of their own."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.comparison import comparisons
from analysis.formats import ScoreFormat
from analysis.frames import Findings
from analysis.outcome import summary
from analysis.paper.printed import printed_tables, published_records
from analysis.paper.tables import formulas, paper_tables
from analysis.statistics.intervals import t_interval
from analysis.tables.base import ReportTable
from dice_ray.config.schema import _PaperData
from dice_ray.tracking.schema import DATA_FILE
from tests.analysis.cells import study

ARMS = {
    "cross_entropy": [0.80, 0.82, 0.81],
    "focal": [0.81, 0.83, 0.83],
    "paper_dl": [0.66, 0.66, math.nan],
    "dice": [0.85, 0.87, 0.85],
}


def by_model(table: ReportTable) -> dict[str, dict[str, Any]]:
    rows = table.shown.to_dict("records")
    return {str(row["Model"]): {str(name): value for name, value in row.items()} for row in rows}


def paper(frame: pd.DataFrame) -> dict[str, ReportTable]:
    return {table.name.removeprefix("paper_table_"): table for table in paper_tables(Findings(frame))}


def test_mrpc_stands_in_table_7() -> None:
    frame = study(ARMS, data="mrpc", published="mrpc", encoder="minilm", task="sentence_pair")
    frame["metrics.test/constant_f1"] = np.where(frame["kind"] == "cell", 0.7988, np.nan)
    frame["metrics.test/collapsed"] = (frame["arm"] == "paper_dl").astype(float)
    frame["metrics.test/threshold"] = 0.4
    made = paper(frame)
    assert list(made) == ["7"]
    assert made["7"].notes[0].startswith("Ours: mrpc, minilm at the threshold of .5; means over seeds")
    rows = by_model(made["7"])
    assert [*rows][:8] == [
        *("BERT (Devlin et al., 2018)", "BERT+FL", "BERT+DL", "BERT+DSC"),
        *("XLNet (Yang et al., 2019)", "XLNet+FL", "XLNet+DL", "XLNet+DSC"),
    ]
    assert [*rows][8:] == ["ours: dice", "constant predictor"]
    assert rows["BERT+FL"]["MRPC F1"] == "88.43 (+0.43)"
    assert rows["BERT+FL"]["QQP F1"] == "91.86 (+0.56)"
    assert rows["BERT+FL"]["MRPC ours F1"].startswith("82.33 [")
    assert rows["BERT+FL"]["MRPC difference"].startswith("+1.33 [")
    assert rows["BERT+DL"]["MRPC ours F1"].endswith("; 1 failed; 2 collapsed")
    assert rows["BERT+DL"]["MRPC seeds"] == "2"
    assert rows["BERT+DSC"]["MRPC ours F1"] == "missing"
    assert rows["XLNet+DSC"]["MRPC ours F1"] == ""
    assert rows["constant predictor"]["MRPC ours F1"] == "79.88"
    assert "QQP ours F1" not in made["7"].shown
    assert made["7"].marks[8, "MRPC ours F1"] == "bold"
    assert made["7"].marks[1, "MRPC difference"] == "grey"
    assert any("+0.73 on QQP, the table +0.79" in note for note in made["7"].notes)


@pytest.mark.parametrize("looks", [None, "5 10 15"])
def test_differences_are_those_of_the_comparison(looks: str | None) -> None:
    """Finds tests of a family of their own, or as of one look, so that one report calls a difference both."""
    arms = {arm: (2 * of_arm)[:5] for arm, of_arm in ARMS.items()}
    frame = study(arms, data="mrpc", published="mrpc", encoder="minilm", task="sentence_pair")
    frame = frame.assign(**{"tags.looks": looks, "seed": frame["seed"] + 1})
    frame["metrics.test/f1_tuned"] = frame["metrics.test/f1"] + frame["seed"].astype(float) / 1000
    findings = Findings(frame)
    (compared,) = comparisons(findings)
    shown = {
        arm.name: ScoreFormat(percent=True).show_interval(arm.difference.interval, "+")
        for arm in compared.arms
        if arm.difference
    }
    rows = by_model(paper(frame)["7"])
    printed = {name: rows[row]["MRPC difference"] for name, row in (("focal", "BERT+FL"), ("dice", "ours: dice"))}
    assert printed == {name: shown[name] for name in printed}


def test_over_splits_of_their_own_intervals_are_wider_beside_the_paper_too() -> None:
    tags = {"data": "mrpc", "published": "mrpc", "encoder": "minilm", "task": "sentence_pair"}
    here, drawn = (
        by_model(paper(study(ARMS, **each))["7"])["BERT+FL"] for each in (tags, tags | {"test_per_train": "1"})
    )
    shown = [ScoreFormat(percent=True).show_interval(t_interval(ARMS["focal"], ratio)) for ratio in (0, 1)]
    assert [here["MRPC ours F1"], drawn["MRPC ours F1"]] == shown
    # The variance is s^2/3, or (1/3 + 1) s^2; three seeds are too few to be corrected for other arms.
    spread = np.std([0.01, 0.01, 0.02], ddof=1)
    halves = [100 * stats.t.ppf(1 - 0.05 / 2, 2) * spread * math.sqrt(1 / 3 + ratio) for ratio in (0, 1)]
    for row, half in zip((here, drawn), halves, strict=True):
        assert row["MRPC difference"] == f"+1.33 [{4 / 3 - half:+.2f}, {4 / 3 + half:+.2f}]"


def test_xlnet_stands_in_its_own_rows() -> None:
    frame = pd.concat(
        [
            study(ARMS, data="mrpc", published="mrpc", encoder="minilm", task="sentence_pair"),
            study(
                {"cross_entropy": [0.9, 0.91]},
                data="mrpc",
                published="mrpc",
                encoder="folder/xlnet-base",
                task="sentence_pair",
            ),
        ],
        ignore_index=True,
    )
    rows = by_model(paper(frame)["7"])
    assert rows["XLNet (Yang et al., 2019)"]["MRPC ours F1"].startswith("90.50 [")
    assert rows["BERT (Devlin et al., 2018)"]["MRPC ours F1"].startswith("81.00 [")
    assert rows["XLNet+FL"]["MRPC ours F1"] == "missing"


@pytest.mark.parametrize(("task", "base"), [("mrc_ner", "BERT-MRC"), ("tagging", "BERT-Tagger")])
def test_the_formulation_decides_the_rows_of_table_5(task: str, base: str) -> None:
    frame = study(ARMS, data="conll03", published="conll03", encoder="minilm", task=task)
    frame["metrics.test/precision"] = frame["metrics.test/f1"] + 0.01
    made = paper(frame)
    assert list(made) == ["5"]
    assert "threshold" not in made["5"].notes[0]
    rows = by_model(made["5"])
    assert next(iter(rows)) == "English CoNLL 2003"
    assert "Glyce-BERT (Wu et al., 2019)" not in rows
    plain = next(row for model, row in rows.items() if model.startswith(f"{base} ("))
    assert (plain["ours F1"][:5], plain["ours Prec."], plain["ours Rec."]) == ("81.00", "82.00", "")
    in_row = rows["BERT-MRC+FL"].get("ours F1", "")
    assert in_row.startswith("82.33") == (base == "BERT-MRC")
    assert ("ours: focal" in rows) == (base == "BERT-Tagger")


def test_parts_of_speech_are_not_names() -> None:
    frame = study(ARMS, data="ritter2011", published="ritter2011", encoder="minilm", task="tagging")
    assert not paper(frame)
    assert list(paper(frame.assign(**{"params.task.tagging.tags": "plain"}))) == ["4"]


def altered(data: str) -> pd.DataFrame:
    frames = []
    for number, imbalance in enumerate(("none", "add_positive", "drop_negative")):
        arms = {arm: [score - number / 10 for score in scores] for arm, scores in ARMS.items()}
        frame = study(arms, data=data, published=data, encoder="minilm", task="sentence_pair", variant=imbalance)
        frames.append(frame.assign(**{"params.data.imbalance": imbalance}))
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(("data", "tables"), [("qqp", ["7", "8"]), ("mrpc", ["7"])])
def test_altered_training_sets_are_the_columns_of_table_8(data: str, tables: list[str]) -> None:
    made = paper(altered(data))
    assert list(made) == tables
    if data != "qqp":
        return
    rows = by_model(made["8"])
    assert rows["BERT"]["+ positive F1"] == "92.27"
    assert [rows["BERT"][f"{name} ours F1"][:5] for name in ("original", "+ positive", "- negative")] == [
        *("81.00", "71.00", "61.00")
    ]
    assert "+ negative ours F1" not in made["8"].shown
    assert data in made["8"].notes[0]
    assert any("29.4 %" in note for note in made["8"].notes)


@pytest.mark.parametrize(("data", "tables"), [("quoref", ["10"]), ("mrpc", [])])
def test_the_alphas_are_the_rows_of_table_10(data: str, tables: list[str]) -> None:
    arms = {f"alpha_{alpha}": [0.5 + alpha / 10, 0.51 + alpha / 10] for alpha in (0.1, 0.5, 0.9)}
    frame = study(
        {"cross_entropy": [0.6, 0.62]} | arms | {"batch": [0.5, 0.5]}, data=data, published=data, encoder="minilm"
    )
    alpha = {"alpha_0.1": 0.1, "alpha_0.5": 0.5, "alpha_0.9": 0.9, "batch": 0.5}
    frame["params.loss.tversky.alpha"] = frame["arm"].map(alpha)
    frame["params.loss.tversky.beta"] = 1 - frame["params.loss.tversky.alpha"]
    frame["params.loss.tversky.scope"] = np.where(frame["arm"] == "batch", "batch", "example")
    made = paper(frame)
    assert [name for name in made if name == "10"] == tables
    if not tables:
        return
    ours = "English QuoRef ours F1"
    rows = by_model(made["10"])
    assert [rows[f"alpha = {alpha}"][ours][:5] for alpha in (0.1, 0.5, 0.9)] == ["51.50", "55.50", "59.50"]
    assert rows["alpha = 0.2"][ours] == "missing"
    assert rows["alpha = 0.6"]["Chinese Onto4.0 F1"] == "84.67"
    assert {"ours: batch", "ours: cross_entropy"} <= set(rows)


def test_accuracy_stands_in_table_9() -> None:
    frame = study(
        {"cross_entropy": [0.9, 0.91], "paper_dsc": [0.8, 0.81]},
        "test/accuracy",
        data="sst2",
        published="sst2",
        task="x",
    )
    rows = by_model(paper(frame)["9"])
    assert rows["BERT+DSC"]["SST-2 ours Acc"].startswith("80.50")


def test_table_2_has_the_losses_that_ran() -> None:
    losses = {"cross_entropy": [0.9], "dice": [0.8], "logit_adjusted": [0.7]}
    frame = study(losses, data="mrpc", published="mrpc")
    (table,) = formulas(Findings(frame))
    assert table.shown["loss"].tolist() == ["cross_entropy", "dice", "logit_adjusted"]
    assert table.shown["in the paper"].tolist() == ["CE", "DL", ""]
    assert "2py + gamma" in table.text()
    assert not formulas(Findings(frame.iloc[:1]))
    assert not formulas(Findings(study(losses, data="mine"))), "none by default"


def test_other_data_have_no_table() -> None:
    assert not paper(study(ARMS, data="mine", encoder="minilm", task="sentence_pair"))
    assert not paper(study(ARMS, data="synthetic:pairs", encoder="minilm", task="sentence_pair"))


@pytest.mark.parametrize("data", ["qqp", "squad2_dev"])
def test_a_part_of_published_data_is_not_beside_the_paper(data: str) -> None:
    """Finds scores of QQP's dev portion in Table 7, by the name of their folder."""
    found = Findings(study(ARMS, data=data, encoder="minilm", task="sentence_pair"))
    assert not paper_tables(found)
    assert not formulas(found)
    assert not [sentence for sentence in summary(found) if "paper" in sentence]


@pytest.mark.parametrize(("records", "is_whole"), [(679, False), (3_668, False), (3_669, True), (4_076, True)])
def test_files_that_were_cut_are_not_beside_the_paper(records: int, is_whole: bool) -> None:
    """Finds a part of a data set in the files of its preset, whose name alone would put it into Table 7."""
    frame = study(ARMS, data="mrpc", published="mrpc", encoder="minilm", task="sentence_pair")
    stored = {"read": {"train": {"rows": records}}, "sizes": {}}
    found = Findings(frame, lambda runs, file: {"study": json.dumps(stored)} if file == DATA_FILE else {})
    assert bool(paper_tables(found)) == bool(formulas(found)) == is_whole
    left_out = [sentence for sentence in summary(found) if "paper" in sentence]
    why = f"the training file of mrpc has {records:,} of the 4,076 published records"
    assert left_out == ([] if is_whole else [f"The paper's tables are left out: {why}."])


def test_presets_can_name_every_data_set_of_the_tables() -> None:
    assert set(get_args(_PaperData)) == {*published_records()}
    assert {*published_records()} == {block.data for printed in printed_tables() for block in printed.blocks}
