"""Uploads an exported model to the Hugging Face hub, as a new commit of a model repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dice_ray.errors import InputError, RunError, one_line


def check(repository: str) -> None:
    """A repository must be named `ORG/NAME`, this machine logged in, and the hub not switched off: asked before work.

    Raises:
        InputError: The name is malformed.
        RunError: There is no token, or it cannot be one, or HF_HUB_OFFLINE is set.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise InputError(f"a repository of the Hugging Face hub must be named ORG/NAME: {one_line(error)}") from error
    if "/" not in repository:
        raise InputError(f"a repository of the Hugging Face hub must be named ORG/NAME, got {repository!r}")
    if constants.HF_HUB_OFFLINE:
        raise RunError("an upload needs the Hugging Face hub, and HF_HUB_OFFLINE is set: unset it")
    _token()


def push(folder: Path, repository: str, *, is_public: bool) -> None:
    """Upload the files of a folder; a repository that does not exist is made, one that exists keeps its visibility.

    Files of these names are replaced, others stay. After an interrupted upload, the same call sends what is missing.

    Raises:
        RunError: The hub does not answer, or refuses; the message never holds the token.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    # When the hub does not answer: an error of its HTTP client, httpx before huggingface_hub 2, and then httpx2.
    no_answer: Any = HfHubHTTPError.__bases__[0]
    api = HfApi(token=_token())
    try:
        api.create_repo(repository, private=not is_public, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload a model trained by dice_ray")
    except HfHubHTTPError as error:
        raise RunError(_refusal(repository, error.response.status_code, error.server_message)) from error
    except (no_answer, OSError, RuntimeError, ValueError) as error:
        message = one_line(error) or type(error).__name__
        raise RunError(f"the upload to {repository} at {constants.ENDPOINT} failed: {message}") from error


def _token() -> str:
    from huggingface_hub import get_token

    token = get_token()
    if token is None:
        raise RunError("an upload needs a token of the Hugging Face hub: log in with `hf auth login`, or set HF_TOKEN")
    if not (token.isascii() and token.isprintable()):  # else the HTTP client would print it in its own error
        raise RunError("the token of the Hugging Face hub has a character that no token has: log in again")
    return token


def _refusal(repository: str, status: int, message: str | None) -> str:
    must = {
        401: "the token must be a valid one: log in again with `hf auth login`, or set HF_TOKEN",
        403: f"the token must have write access to {repository.partition('/')[0]}",
    }
    reasons = "; ".join(filter(None, [must.get(status), one_line(message or "")]))
    refusal = f"the Hugging Face hub refused the upload to {repository} with status {status}"
    return f"{refusal}: {reasons}" if reasons else refusal
