"""Files that outlive a process, and files elsewhere: atomic writes, locks, checksums, object stores and their URLs.

Three rules keep a folder usable after any kill or power cut:

- A file is replaced as a whole (`write_atomically`, `whole_output`): written beside, flushed to the disk (`sync`), then
  renamed. Without the flush a file system may store the rename before the content, which leaves an empty file.
- One process writes at a time (`lock`). The lock is a `flock`, which the operating system releases with the process,
  so a killed driver never leaves a stale lock behind.
- What a run is resumed from has checksums (`sealed`, `sealed_text`): a flipped bit in a number would be read as another
  number. Files of earlier versions of dice_ray have none, and are read as they are.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dice_ray.errors import BusyError, InputError, RunError, first_line, shown

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

RUNS: Final = "DICE_RAY_RUNS"
"""Environment variable: the folder of runs, or the URL of their store."""
_DEFAULT: Final = "dice_ray_runs"
_ANSWER_SECONDS: Final = 30
# A parameter of a URL whose name says that its value is secret.
_SECRET: Final = re.compile(r"(?i)([?&][^=&\s]*(?:password|passwd|pwd|token|secret|key|signature|sig)=)[^&\s'\"]+")
_LINE: Final = re.compile(r', "crc32": "([0-9a-f]{8})"\}$')
_TEXT: Final = re.compile(r"# crc32 of the lines below: ([0-9a-f]{8})\n")


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes, remembered while its inode, size and modification time stay the same."""
    status = path.stat()
    return _hash(path.absolute(), status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _hash(path: Path, inode: int, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(file: Path) -> None:
    """Block until a file's content is on the disk; call it before a rename that makes the file visible."""
    with file.open("rb") as content:
        os.fsync(content.fileno())


def write_atomically(file: Path, text: str) -> None:
    """Replace a file as a whole or not at all, even after a kill or a power cut."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.new")  # two processes may store the same file at once
    unfinished.write_text(text, encoding="utf-8")
    sync(unfinished)
    unfinished.replace(file)


def check_output(file: Path, inputs: Iterable[Path] = ()) -> None:
    """Check, before any work, that a user's output file can be written and that no input would be lost.

    Raises:
        InputError: Its folder does not exist or cannot be written, it is a folder, or it is one of the inputs.
    """
    target = file.resolve()
    if target.is_dir():
        raise InputError(f"the output must be a file, and {file} is a folder")
    if not target.parent.is_dir():
        raise InputError(f"the output must be in a folder that exists, and there is no {target.parent} for {file}")
    for each in inputs:
        if each.exists() and target.exists() and each.samefile(target):
            raise InputError(f"the output must not be the input, {each}: it would be overwritten. Choose another file")
    if not os.access(target if target.exists() and not target.is_file() else target.parent, os.W_OK):
        raise InputError(f"the output must be in a folder that can be written, and {target.parent} cannot")


@contextmanager
def whole_output(file: Path) -> Iterator[Path]:
    """A path to write a user's output file to; the file is replaced at the end of the block, if that raises nothing.

    What is no regular file, as `/dev/stdout`, is written to directly.
    """
    target = file.resolve()  # a symbolic link stays, and its target is replaced
    if target.exists() and not target.is_file():
        yield file
        return
    # Under a name of its own: the user may have any other file in the folder.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        unfinished = Path(folder) / target.name
        yield unfinished
        sync(unfinished)
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.replace(target)


def write_output(file: Path, text: str, *, is_private: bool = False) -> None:
    """Write a user's output file as a whole or not at all; a new private one is for its owner alone."""
    with whole_output(file) as unfinished:
        if is_private and unfinished != file:  # not /dev/stdout and the like
            unfinished.touch(mode=0o600)
        unfinished.write_text(text, encoding="utf-8")


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Make this process the only driver of a folder until the end of the block.

    Raises:
        BusyError: Another process drives the folder.
        RunError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = (folder / "lock").open("w")
    except OSError as error:
        raise RunError(f"{folder} must be a folder that can be written: {error.strerror}") from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                f"{folder} must have one driver, and another process runs it: wait for its end, or choose another name"
            ) from error
        yield


def sealed(line: str) -> str:
    """A line of JSON, an object with at least one key, with its checksum.

    >>> sealed('{"id": "0001"}')
    '{"id": "0001", "crc32": "5a04ec3c"}'
    """
    return f'{line[:-1]}, "crc32": "{_checksum(line)}"}}'


def unsealed(line: str) -> str:
    """The line without its checksum; raises a ValueError if it was damaged."""
    if (seal := _LINE.search(line)) is None:
        return line
    return _checked(line[: seal.start()] + "}", seal[1])


def sealed_text(text: str) -> str:
    """A text in a format in which a line that begins with # is a comment, with its checksum."""
    return f"# crc32 of the lines below: {_checksum(text)}\n{text}"


def unsealed_text(text: str) -> str:
    """The text without its checksum; raises a ValueError if it was changed."""
    if (seal := _TEXT.match(text)) is None:
        return text
    return _checked(text[seal.end() :], seal[1])


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _checked(text: str, expected: str) -> str:
    if (actual := _checksum(text)) != expected:
        raise ValueError(f"its checksum must be {expected}, and is {actual}")
    return text


def is_url(text: str) -> bool:
    return "://" in text


def store_url() -> str | None:
    """The URL of the store; None where the folder of runs is one that all machines see.

    Raises:
        InputError: It is no URL of a store that can be written to.
    """
    named = os.environ.get(RUNS, "")
    if not is_url(named):
        return None
    if not re.match(r"(?!https?:)[a-zA-Z][\w.+-]*://+[^/]", named):
        must = "must be a folder, or the URL of a store that can be written to, such as s3://BUCKET/FOLDER"
        raise InputError(f"{RUNS} {must}, got {without_password(named)}")
    return named


def runs_folder() -> Path:
    """The folder of runs on this machine: `$DICE_RAY_RUNS`, or `dice_ray_runs` in the working directory.

    If the variable is a URL, this folder has the plans and ledgers, and the checkpoints until they are in the store.

    Raises:
        InputError: Its name is not UTF-8: no store takes it as text.
    """
    named = _DEFAULT if store_url() else os.environ.get(RUNS) or _DEFAULT
    if os.fsencode(named) != named.encode(errors="replace"):
        raise InputError(f"{RUNS} must be text in UTF-8, got {shown(named)}")
    return Path(named).expanduser()


@lru_cache(maxsize=4)
def opened(url: str) -> tuple[FileSystem, str]:
    """The file system of a URL, or of an absolute path, and the path in it.

    The first request is made by a thread: the libraries of some stores retry for minutes, deaf to Ctrl-C and SIGTERM.

    Raises:
        InputError: No installed package knows this kind of URL.
        OSError: Nothing answers.
    """
    answers: list[tuple[FileSystem, str] | Exception] = []

    def ask() -> None:
        try:
            filesystem, path = _file_system(url)
            filesystem.get_file_info(path)
            answers.append((filesystem, path))
        except Exception as error:  # noqa: BLE001  raised below, by the thread that asked
            answers.append(error)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_ANSWER_SECONDS)
    answer = answers[0] if answers else TimeoutError(f"it must answer within {_ANSWER_SECONDS:g} s")
    if isinstance(answer, OSError):
        raise OSError(f"nothing answers at {without_password(url)}: {first_line(answer)}") from answer
    if isinstance(answer, Exception):
        raise answer
    return answer


def _file_system(url: str) -> tuple[FileSystem, str]:
    import fsspec
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    if url.startswith(("gs://", "gcs://")) and "retry_limit_seconds" not in url:  # otherwise 15 minutes
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds=60"
    try:
        filesystem, path = FileSystem.from_uri(url)
    except ArrowInvalid:  # a kind of store that pyarrow does not know itself
        try:
            other, path = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            why = f"no installed package knows this kind of URL: {first_line(error)}"
            raise InputError(f"{without_password(url)}: {why}") from error
        filesystem = PyFileSystem(FSSpecHandler(other))
    return filesystem, path.rstrip("/")


def disk_error(error: OSError) -> str:
    """The message of an error of the operating system, with the file that it names.

    If the disk is full and the error names no file, the message has the folders of dice_ray that are on a full disk.
    """
    if error.errno is None:
        return str(error)
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and not names:
        cache = os.environ.get("DICE_RAY_CACHE") or Path.home()
        folders = {Path.cwd(), runs_folder().absolute(), Path(cache), Path(tempfile.gettempdir())}
        existing = {next(path for path in (folder, *folder.parents) if path.exists()) for folder in folders}
        names = sorted(str(path) for path in existing if shutil.disk_usage(path).free < 1 << 20)
    return ": ".join([os.strerror(error.errno), *([", ".join(names)] if names else [])])


def joined(url: str, name: str) -> str:
    """The URL of a file in a folder.

    >>> joined("s3://bucket/data?region=eu-west-1", "train.tsv")
    's3://bucket/data/train.tsv?region=eu-west-1'
    """
    base, mark, query = url.partition("?")
    return f"{base.rstrip('/')}/{name}{mark}{query}"


def parted(url: str) -> tuple[str, str]:
    """The URL of a file's folder, and the file's name.

    >>> parted("s3://bucket/data/train.tsv?region=eu-west-1")
    ('s3://bucket/data?region=eu-west-1', 'train.tsv')
    """
    base, mark, query = url.partition("?")
    folder, _, name = base.rpartition("/")
    return f"{folder}{mark}{query}", name


def name_of(url: str) -> str:
    """The last part of the path of a URL, or its host.

    >>> name_of("s3://bucket/data/mrpc/?region=eu-west-1"), name_of("s3://bucket")
    ('mrpc', 'bucket')
    """
    parts = urlsplit(url)
    return parts.path.rstrip("/").rpartition("/")[2] or str(parts.hostname)


def holds_secret(url: str) -> bool:
    """Whether a URL has a password, or a parameter whose name says that it is secret."""
    return is_url(url) and (urlsplit(url).password is not None or _SECRET.search(url) is not None)


def without_password(text: str) -> str:
    """A URL, or a message that holds one, with the user, the password and the tokens of the URL hidden.

    >>> without_password("postgresql://me:secret@host/runs")
    'postgresql://***@host/runs'
    >>> without_password("https://host/?token=secret&page=2")
    'https://host/?token=***&page=2'
    """
    # A secret key of S3 may hold a slash: after USER: all is hidden up to the last @ of the word.
    return _SECRET.sub(r"\1***", re.sub(r"://([^/\s:@]*:[^\s'\"]*|[^/\s]*)@", "://***@", text))
