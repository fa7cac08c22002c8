"""Data at URLs: fetched once for each version, by one process of a machine, with errors that say what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice_ray.config.load import Layer, resolve
from dice_ray.config.schema import RunConfig
from dice_ray.data import cache
from dice_ray.data.sources import DataConfig, load
from dice_ray.errors import ConfigError, DataError
from dice_ray.files import joined, opened
from dice_ray.settings import nested
from tests.object_store import CREDENTIALS, requests, s3

PAIRS = "".join(f"a{number}\tb{number}\t{number % 2}\n" for number in range(20))
LOADER = """
import json, sys
from dice_ray.data.sources import DataConfig, load
print(len(load(DataConfig.model_validate(json.loads(sys.argv[1]))).train))
"""


@pytest.fixture(autouse=True)
def _an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICE_RAY_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a folder in a bucket, and the log of its server."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        folder = tmp_path_factory.mktemp("s3")
        with s3(folder) as url:
            yield url, folder / "s3.log"


@pytest.fixture(params=["s3", "file", "local"])
def url(request: pytest.FixtureRequest, server: tuple[str, Path], tmp_path: Path) -> str:
    """A folder of each kind: by pyarrow over a network, by pyarrow on a disk, by fsspec."""
    of_test = server[0].replace("/runs?", f"/{tmp_path.name}?")
    return of_test if request.param == "s3" else f"{request.param}://{tmp_path}/there"


def put(url: str, name: str, text: str) -> None:
    filesystem, path = opened(joined(url, name))
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    with filesystem.open_output_stream(path) as file:
        file.write(text.encode())


def pairs(url: str, **more: str) -> DataConfig:
    reader = {"tables": {"quoting": False, "header": False, "columns": {"pair": {"first": 0, "second": 1, "label": 2}}}}
    return DataConfig.model_validate(
        {"source": {"files": {"folder": url, "train": "train.tsv", "reader": reader, **more}}}
    )


def kinds() -> list[str]:
    return sorted(entry.kind for entry in cache.list_entries())


def test_a_file_at_a_url_is_read_as_one_on_the_disk_and_fetched_again_when_it_changes(url: str, tmp_path: Path) -> None:
    """Finds a stale copy, also of the same size, and a copy for each run."""
    put(url, "train.tsv", PAIRS)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "train.tsv").write_text(PAIRS)
    here, there = load(pairs(str(tmp_path / "here"))), load(pairs(url))
    assert (there.train, there.digest, there.report) == (here.train, here.digest, here.report)
    assert kinds() == ["files", "records", "records"]
    load(pairs(url))
    assert kinds() == ["files", "records", "records"]
    put(url, "train.tsv", PAIRS.replace("a1\t", "c1\t"))
    assert load(pairs(url)).digest != there.digest
    assert kinds() == ["files", "files", "records", "records", "records"]


def test_files_that_are_read_together_are_fetched_together(url: str) -> None:
    """Finds a reader of two files that gets one of them."""
    put(url, "sentences.txt", "\n".join(f"Ann came{number}" for number in range(20)))
    put(url, "tags.txt", "\n".join(["B-PER O"] * 20))
    files = {"folder": url, "train": "sentences.txt", "reader": "parallel"}
    assert load(DataConfig.model_validate({"source": {"files": files}})).train[0].tags == ("B-PER", "O")


def test_a_local_folder_of_the_same_name_is_not_read(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.jsonl").mkdir()
    rows = [{"text": f"Ada ran {number}", "label": [[0, 3, "PER"]]} for number in range(20)]
    put(url, "train.jsonl", "\n".join(map(json.dumps, rows)))
    source = {"files": {"folder": url, "train": "train.jsonl", "reader": {"spans": {}}}}
    splits = load(DataConfig.model_validate({"source": source, "dev_share": 0.2}))
    assert (len(splits.train), len(splits.dev)) == (16, 4)


def test_lists_of_one_document_are_splits(url: str) -> None:
    """Finds a key that is taken for a part of the name of the file at the URL."""
    rows = {split: [[f"Ann {split} {number}", "ab"[number % 2]] for number in range(4)] for split in ("train", "val")}
    put(url, "all.json", json.dumps(rows))
    reader = {"jsonl": {"columns": {"text": {"text": 0, "label": 1}}}}
    files = {"folder": url, "train": "all.json#train", "dev": "all.json#val", "reader": reader}
    loaded = load(DataConfig.model_validate({"source": {"files": files}}))
    assert [records[0].text for records in (loaded.train, loaded.dev)] == ["Ann train 0", "Ann val 0"]


def test_a_missing_file_is_named_with_its_setting_and_the_nearest_one(url: str) -> None:
    put(url, "trian.tsv", PAIRS)
    with pytest.raises(
        DataError, match=r"data.source.files.train: there must be a file .*train.tsv.*did you mean 'trian"
    ):
        load(pairs(url))


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (
            "s3://bucket/x?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1",
            "may read, with credentials of its",
        ),
        ("az://container/data", "no installed package knows this kind of URL: .*adlfs"),
        ("nothing://bucket/data", "may read, .*: Protocol not known: nothing"),
    ],
)
def test_what_cannot_be_read_is_one_error(folder: str, said: str, server: object) -> None:
    """Finds errors of a file system's own class, which Ray would take for one of the machine."""
    with pytest.raises(
        DataError, match=f"data.source.files.train: there must be a file {folder.split('?')[0]}.*{said}"
    ):
        load(pairs(folder))


def test_processes_that_start_together_fetch_and_read_once(server: tuple[str, Path], tmp_path: Path) -> None:
    """Finds trials of a machine that start together and each fetch and read the same file."""
    url = server[0].replace("/runs?", f"/{tmp_path.name}?")
    put(url, "train.tsv", PAIRS)
    before = requests(server[1], "GET", f"/{tmp_path.name}/train.tsv")
    source = json.dumps(nested(pairs(url)))
    processes = [
        subprocess.Popen([sys.executable, "-c", LOADER, source], stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    assert [process.communicate(timeout=300)[0] for process in processes] == ["18\n"] * 6
    assert requests(server[1], "GET", f"/{tmp_path.name}/train.tsv") - before == 1
    assert kinds() == ["files", "records"]


def config(folder: str) -> RunConfig:
    files = {"folder": folder, "train": "train.tsv", "reader": {"tables": {"quoting": False}}}
    return resolve([Layer("test", {"task": "sentence_pair", "data": {"source": {"files": files}}})])


@pytest.mark.parametrize("url", ["s3://KEY:secret@bucket/data/mine", "https://host/data/mine?X-Amz-Signature=secret"])
def test_a_secret_in_a_url_is_not_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a key that MLflow shows everyone: the settings of a run are stored as they were written."""
    with pytest.raises(ConfigError, match="must hold no password or key: give each machine credentials"):
        config(url)
    monkeypatch.setenv("MY_DATA", url)
    by_variable = config("$MY_DATA")
    assert by_variable.data_name == by_variable.data.source.title == "mine"
    assert "secret" not in json.dumps(nested(by_variable))
    monkeypatch.setenv("MY_DATA", "s3://KEY:secret@127.0.0.1:1/data?scheme=http&region=us-east-1&token=secret")
    with pytest.raises(DataError) as caught:
        load(by_variable.data)
    assert "secret" not in str(caught.value)
