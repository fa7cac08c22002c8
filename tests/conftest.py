"""What every test has: one thread, its own folder, no network, no settings of the user; and no process or file left."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from tests.kept_ray import KEPT, KeptRay
from tests.standing import standing
from tests.tracking.servers import Server
from tests.tracking.stores import copied

REPOSITORY = Path(__file__).parents[1]
TOKEN = uuid.uuid4().hex
"""Every process of this session inherits it, so that those which outlive their parent are found too."""

os.environ |= {
    "DICE_RAY_TEST_SESSION": TOKEN,
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "CUDA_VISIBLE_DEVICES": "",  # the tests are those of a CPU, also on a machine with a GPU
    "RAY_worker_niceness": "0",  # Ray gives its workers 15: beside a busy second process of pytest they would starve
}

# The first process decides, before anything reads them; those of pytest-xdist and of tests inherit both.
IS_FIRST = "DICE_RAY_TEST_HOME" not in os.environ
if IS_FIRST:
    os.environ["HOME"] = os.environ["DICE_RAY_TEST_HOME"] = tempfile.mkdtemp(prefix="dice-ray-home-")
    os.environ["DICE_RAY_TEST_DATA"] = os.environ.pop("DICE_RAY_DATA", "")

# An example that imports a library first takes a second on a busy machine; pytest's own timeout finds those that hang.
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["DICE_RAY_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path) -> Iterator[None]:
    with standing(tmp_path):
        yield


@pytest.fixture(autouse=True)
def _real_data(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a test marked `real_data` has DICE_RAY_DATA: another one that reads it fails on every machine."""
    if request.node.get_closest_marker("real_data"):
        monkeypatch.setenv("DICE_RAY_DATA", str(request.getfixturevalue("data_folder")))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """A process that a test forks waits for ever for the threads that an earlier test gave torch."""
    yield
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def kept_ray() -> Iterator[KeptRay]:
    """For fixtures of a wider scope; a test uses `on_kept_ray`."""
    yield KEPT
    KEPT.close()


@pytest.fixture
def on_kept_ray(kept_ray: KeptRay) -> Iterator[None]:
    """Everything that starts Ray in this test gets one that runs already."""
    with kept_ray.in_place():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of the tests that run")


def pytest_unconfigure() -> None:
    if IS_FIRST:
        shutil.rmtree(os.environ["DICE_RAY_TEST_HOME"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start Ray first, since they take longest; those of a file on the kept Ray one after the other."""
    items.sort(key=lambda item: (item.get_closest_marker("ray") is None, _keeps_ray(item)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Each file in one process, its tests that start Ray apart from the others: both processes begin with those.

    `--dist loadgroup` of pytest-xdist 3.8 would do this, but groups nothing under pytest 9.2 (its issue 1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # the order of the collection, Ray first, and not the most tests
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group
    return scheduler


def _group(nodeid: str) -> str:
    file, test = re.split(r"::|\[", nodeid)[:2]
    return f"ray in {file}" if test in _marked_ray(file) else file


@cache
def _marked_ray(file: str) -> frozenset[str]:
    """The tests and classes of a file that are marked `ray`: the scheduler has their names alone."""
    tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return frozenset(
        node.name for node in defined if "pytest.mark.ray" in {ast.unparse(mark) for mark in node.decorator_list}
    )


def _keeps_ray(item: pytest.Item) -> bool:
    return "kept_ray" in getattr(item, "fixturenames", ())


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("ray") and not _keeps_ray(item):
        KEPT.close()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data sets, for tests marked `real_data`."""
    if not os.environ["DICE_RAY_TEST_DATA"]:
        pytest.skip("DICE_RAY_DATA does not name the folder of the real data")
    folder = Path(os.environ["DICE_RAY_TEST_DATA"])
    assert folder.is_dir(), f"DICE_RAY_DATA must name a folder, got {folder}"
    return folder


@pytest.fixture(scope="session", autouse=True)
def _nothing_left() -> Iterator[None]:
    before = _files()
    yield
    _, alive = psutil.wait_procs(_processes(), timeout=10)
    left = [f"process {process.pid}: {' '.join(process.cmdline())[:200]}" for process in alive if process.is_running()]
    for process in alive:
        process.kill()
    left += [f"file {file}" for file in sorted(_files() - before)]
    assert not left, "the tests left behind:\n" + "\n".join(left)


def _processes() -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and _is_ours(process)]


def _is_ours(process: psutil.Process) -> bool:
    try:
        ends_with_us = "multiprocessing.resource_tracker" in " ".join(process.cmdline())
        return process.environ().get("DICE_RAY_TEST_SESSION") == TOKEN and not ends_with_us
    except psutil.Error:
        return False


def _files() -> set[Path]:
    """What lies in the repository and in the tests' home folder, caches and Matplotlib's `.config` apart."""
    files = {file for folder in (REPOSITORY, Path.home()) for file in folder.iterdir()}
    return {file for file in files if "cache" not in file.name and file.name not in (".config", ".hypothesis")}


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with MLflow's tables."""
    file = tmp_path_factory.mktemp("migrated") / "mlflow.db"
    from dice_ray.tracking.writer import Writer

    Writer("first", f"sqlite:///{file}").close()
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Server]:
    """One server for all tests: it starts in 5 s on an idle core, so each test starts it if needed and leaves it on."""
    folder = tmp_path_factory.mktemp("server")
    server = Server(folder, copied(migrated, folder))
    yield server
    server.stop()


@pytest.fixture
def uri(migrated: Path, tmp_path: Path) -> str:
    """A store for each test: a copy of one that MLflow migrated once."""
    return copied(migrated, tmp_path)
