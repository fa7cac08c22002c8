"""Settings of any kind: what resolves is written as YAML that resolves to the same; a name stays below the runs."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dice_ray.api.presets import layers_of
from dice_ray.config.load import Layer, as_yaml, resolve, set_layer, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.files import runs_folder
from dice_ray.run.folder import check_config, stored_config
from dice_ray.run.names import check_name, valid_name
from dice_ray.settings import nested, paths
from dice_ray.tuning.places import place
from tests.hostile import BOMBS, HOSTILE, altered_bytes, hostile, texts, values

PATHS = st.sampled_from(list(paths(RunConfig)))
BASE = Layer("preset", {"task": "text_classification", "data": {"source": "synthetic"}})
PRESETS = [file.read_bytes() for file in sorted((Path(__file__).parents[2] / "search_spaces/presets").glob("*.yaml"))]
VALUES = st.one_of(
    texts,
    values.map(lambda value: json.dumps(value, ensure_ascii=False)),
    altered_bytes([b"[1, 2]", b"{a: b, c: [d]}", b"2020-01-01", b"0x10", b"1:30", *BOMBS]).map(
        lambda value: value.decode(errors="replace")
    ),
)


@hostile(
    st.dictionaries(st.one_of(PATHS, st.builds("{}.{}".format, PATHS, texts), texts), values, max_size=4), num=12_000
)
def test_settings(given: dict[str, Any]) -> None:
    config = resolve([BASE, values_layer("settings", given)])
    Path("config.yaml").write_text(as_yaml(config), encoding="utf-8")
    assert stored_config(Path()) == config
    check_config(config, Path())


@hostile(st.lists(st.one_of(st.builds("{}={}".format, st.one_of(PATHS, texts), VALUES), texts), max_size=3), num=12_000)
def test_assignments(given: list[str]) -> None:
    resolve([BASE, set_layer(given)])


@hostile(altered_bytes([*PRESETS, *BOMBS]), num=6_000)
def test_presets(given: bytes) -> None:
    Path("mine.yaml").write_bytes(given)
    config = resolve(layers_of(Path("mine.yaml"), ()))
    assert resolve([Layer("again", nested(config))]) == config


@hostile(st.one_of(texts, st.lists(st.sampled_from(HOSTILE)).map("/".join)), num=6_000)
def test_names(given: str) -> None:
    above = runs_folder().resolve()
    with suppress(ValueError):
        assert (above / check_name(given)).resolve().parent == above
    assert (above / check_name(valid_name(given))).resolve().parent == above
    place(given)
