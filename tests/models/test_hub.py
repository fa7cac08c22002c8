"""Uploads to the Hugging Face hub: its own client, against a hub on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from dice_ray.errors import DiceRayError, InputError, RunError
from dice_ray.models.hub import check, push
from tests.models.hub_server import TOKEN, Hub, logged_in


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub that this process is logged in to."""
    with logged_in(monkeypatch, tmp_path) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "README.md").write_text("---\nlibrary_name: transformers\n---\n")
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 1000)
    return folder


@pytest.mark.parametrize("keeps_large_files", [False, True])
def test_each_file_arrives_as_it_is_in_a_private_repository(
    hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, keeps_large_files: bool
) -> None:
    """Nothing else finds an upload that leaves out a file, or makes a repository that everyone can read.

    Large files go by git LFS, which the client uses where its other protocol (Xet) is switched off: the hub on loopback
    does not speak that.
    """
    hub.keeps_large_files = keeps_large_files
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", keeps_large_files)
    check("me/model")
    push(folder, "me/model", is_public=False)
    assert hub.files == {("me/model", file.name): file.read_bytes() for file in folder.iterdir()}
    assert hub.repositories == {"me/model": "private"}
    assert len(hub.uploaded) == keeps_large_files


def test_a_repository_that_exists_gets_the_new_files_and_stays_as_it_is(hub: Hub, folder: Path) -> None:
    """Nothing else finds a second push that fails, or that hides a public model."""
    push(folder, "me/model", is_public=True)
    (folder / "config.json").write_text('{"new": 1}')
    push(folder, "me/model", is_public=False)
    assert hub.files["me/model", "config.json"] == b'{"new": 1}'
    assert hub.repositories == {"me/model": "public"}


@pytest.mark.parametrize(
    ("repository", "token", "reasons"),
    [
        ("others/model", TOKEN, ["status 403", "must have write access to others", "don't have the rights"]),
        ("me/model", "hf_revoked", ["status 401", "`hf auth login`", "Invalid credentials"]),
    ],
)
def test_a_refusal_says_what_the_token_must_be_and_does_not_print_it(
    hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, repository: str, token: str, reasons: list[str]
) -> None:
    """Nothing else finds the client's message of six lines, which names neither the namespace nor the login."""
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(RunError) as error:
        push(folder, repository, is_public=False)
    message = str(error.value)
    assert all(reason in message for reason in reasons), message
    assert "\n" not in message
    assert token not in message
    assert hub.files == {}


def test_a_hub_that_does_not_answer_is_named(hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else finds the traceback of the HTTP client, whose errors are not those of `OSError`."""
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RunError, match=r"^the upload to me/model at http://127.0.0.1:9 failed: .*refused"):
        push(folder, "me/model", is_public=False)


@pytest.mark.parametrize("name", ["model", "me/my/model", "me/a model", "me/..", "", "me/model.git", "\x1b[31m/x"])
def test_a_name_that_is_none_is_refused_before_any_work(hub: Hub, name: str) -> None:
    """Nothing else finds a name without a namespace, which the client takes for one of the user's own."""
    with pytest.raises(InputError, match="must be named ORG/NAME") as error:
        check(name)
    assert str(error.value).isprintable()


def test_what_an_upload_needs_is_asked_for_before_any_work(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else finds an export that is done in vain, or the token in the HTTP client's own error."""
    monkeypatch.setenv("HF_TOKEN", "hf_with\x07bell")
    with pytest.raises(DiceRayError, match="has a character that no token has") as error:
        check("me/model")
    assert "hf_with" not in str(error.value)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(RunError, match="log in with `hf auth login`, or set HF_TOKEN"):
        check("me/model")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RunError, match="HF_HUB_OFFLINE is set: unset it"):
        check("me/model")
