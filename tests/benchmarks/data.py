"""Reading and encoding of real files against `datasets` with the same fast tokenizer: tokens a second, and memory.

Each measurement is a process of its own with cold caches in a folder of its own; ours and theirs take turns. Theirs is
what the documentation of `datasets` shows: `load_dataset` (or `from_generator`) and a batched `map`, and for tags the
alignment with the words that the guide to token classification has.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MAX_LENGTH = 128
TIMES = 10
"""The large file is the file so many times."""


@dataclass(frozen=True)
class Corpus:
    """A real file: how we are told to read it, and how `datasets` is."""

    file: str
    head: bool
    ours: dict[str, Any]
    task: str
    text: str
    load: Callable[[str, str], Any]


def _table(path: str, cache: str) -> Any:
    from datasets import load_dataset

    return load_dataset("csv", data_files=path, delimiter="\t", quoting=3, cache_dir=cache, split="train")


def _json_lines(path: str, cache: str) -> Any:
    from datasets import load_dataset

    return load_dataset("json", data_files=path, cache_dir=cache, split="train")


def _conllu(path: str, cache: str) -> Any:
    from datasets import Dataset

    return Dataset.from_generator(_sentences, gen_kwargs={"path": path}, cache_dir=cache)


def _sentences(path: str) -> Iterator[dict[str, list[str]]]:
    words: list[str] = []
    tags: list[str] = []
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            columns = line.rstrip("\n").split("\t")
            if len(columns) == 10 and columns[0].isdigit():
                words.append(columns[1])
                tags.append(columns[3])
            elif words and not line.strip():
                yield {"words": words, "tags": tags}
                words, tags = [], []


CORPORA = {
    "sst2": Corpus(
        "sst2/train.tsv",
        True,
        {"tables": {"quoting": False, "columns": {"text": {}}}},
        "text_classification",
        "sentence",
        _table,
    ),
    "tnews": Corpus(
        "tnews/train_few_all.json",
        False,
        {"jsonl": {"columns": {"text": {"text": "sentence", "label": "label"}}}},
        "text_classification",
        "sentence",
        _json_lines,
    ),
    "ewt": Corpus("ud28_english_ewt/en_ewt-ud-train.conllu", False, {"conllu": {}}, "tagging", "words", _conllu),
}


def ours(corpus: Corpus, path: Path, tokenizer: Path) -> Any:
    """Read and encode, as a run does."""
    from pydantic import TypeAdapter

    from dice_ray.data.sources import DataConfig, load
    from dice_ray.models.encoder import ModelConfig
    from dice_ray.tasks import TaskConfig
    from dice_ray.tasks.encoding import encode

    source = {"files": {"folder": str(path.parent), "train": path.name, "dev": "dev", "reader": corpus.ours}}
    settings = {corpus.task: {"max_length": MAX_LENGTH} | ({"tags": "plain"} if corpus.task == "tagging" else {})}
    splits = load(DataConfig.model_validate({"source": source}))
    task: Any = TypeAdapter(TaskConfig).validate_python(settings)
    encoded = encode(task, ModelConfig(encoder=str(tokenizer)), splits, "benchmark")
    return encoded.train


def theirs(corpus: Corpus, path: Path, tokenizer: Path) -> Any:
    """The same by `datasets`."""
    import datasets
    from transformers import AutoTokenizer

    datasets.disable_progress_bars()
    data = corpus.load(str(path), os.environ["HF_DATASETS_CACHE"])
    fast = AutoTokenizer.from_pretrained(tokenizer)
    if corpus.task != "tagging":
        encoded = data.map(lambda rows: fast(rows[corpus.text], truncation=True, max_length=MAX_LENGTH), batched=True)
    else:
        numbers = {tag: number for number, tag in enumerate(sorted({tag for tags in data["tags"] for tag in tags}))}
        encoded = data.map(lambda rows: _aligned(rows, fast, numbers), batched=True)
    return encoded


def _aligned(rows: dict[str, Any], tokenizer: PreTrainedTokenizerBase, numbers: dict[str, int]) -> Any:
    """The tags of words as labels of their first pieces."""
    encoded = tokenizer(rows["words"], truncation=True, max_length=MAX_LENGTH, is_split_into_words=True)
    labels = []
    for index, tags in enumerate(rows["tags"]):
        before, of_row = None, []
        for word in encoded.word_ids(batch_index=index):
            of_row.append(-100 if word is None or word == before else numbers[tags[word]])
            before = word
        labels.append(of_row)
    encoded["labels"] = labels
    return encoded


WAYS = {"ours": ours, "theirs": theirs}


def once(way: str, name: str, path: Path, tokenizer: Path) -> dict[str, float]:
    """What one way takes in this process, its imports and the loading of the tokenizer apart."""
    import datasets
    import transformers

    import dice_ray.tasks.encoding  # noqa: F401  its imports are not measured

    datasets.disable_progress_bars()
    transformers.AutoTokenizer.from_pretrained(tokenizer)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = _memory("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    rows = WAYS[way](CORPORA[name], path, tokenizer)
    taken = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    growth = _memory("VmHWM") - before
    return {**taken, "tokens": sum(len(row["input_ids"]) for row in rows), "growth": growth}


def _memory(name: str) -> float:
    """A line of this process's memory, in MB."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) / 1000


def in_a_process(way: str, name: str, path: Path, tokenizer: Path, caches: Path) -> dict[str, float]:
    """The same in a process of its own."""
    environment = os.environ | {
        "DICE_RAY_CACHE": str(caches / "ours"),
        "HF_DATASETS_CACHE": str(caches / "theirs"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    command = [sys.executable, "-m", "tests.benchmarks.data", "--once", way, name, str(path), str(tokenizer)]
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return told


def measure(name: str, rounds: int, folder: Path) -> dict[str, float]:
    """One corpus: the speed of both, the memory of both for the file and the large file, and our warm start."""
    corpus = CORPORA[name]
    source = Path(os.environ["DICE_RAY_DATA"]) / corpus.file
    end = b"\n\n" if corpus.task == "tagging" else b"\n"
    units = source.read_bytes().rstrip(b"\n").split(end)
    head, body = units[: corpus.head], units[corpus.head :]
    for file, content in {"dev": body[:20], "small": body, "large": body * TIMES}.items():
        (folder / file).write_bytes(end.join([*head, *content]) + end)
    tokenizer = folder / "tokenizer"
    _tokenizer(folder / "small", tokenizer)

    told: dict[str, list[dict[str, float]]] = {way: [] for way in ("ours", "theirs", "warm")}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=folder) as caches:
            for way, runs in told.items():
                runs.append(in_a_process(way.replace("warm", "ours"), name, folder / "small", tokenizer, Path(caches)))
    with tempfile.TemporaryDirectory(dir=folder) as caches:
        large = {way: in_a_process(way, name, folder / "large", tokenizer, Path(caches)) for way in WAYS}
    found = {f"{way}_tokens_per_second": statistics.median(map(_speed, told[way])) for way in WAYS}
    pairs = list(zip(told["ours"], told["theirs"], strict=True))
    found["ratio"] = statistics.median(_speed(ours) / _speed(theirs) for ours, theirs in pairs)
    found["cpu_ratio"] = statistics.median(_speed(ours, "cpu") / _speed(theirs, "cpu") for ours, theirs in pairs)
    found["large_cpu_ratio"] = _speed(large["ours"], "cpu") / _speed(large["theirs"], "cpu")
    for way in WAYS:
        found[f"{way}_mb"] = statistics.median(run["growth"] for run in told[way])
        found[f"{way}_large_mb"] = large[way]["growth"]
    return found | {"warm_seconds": statistics.median(run["seconds"] for run in told["warm"])}


def _speed(run: dict[str, float], seconds: str = "seconds") -> float:
    return run["tokens"] / run[seconds]


def _tokenizer(file: Path, folder: Path) -> None:
    """A fast WordPiece tokenizer for a file."""
    from dice_ray.models.encoder import ModelConfig, load_tokenizer

    with file.open(encoding="utf-8") as lines:
        load_tokenizer(ModelConfig(), lines).save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        way, name, path, tokenizer = arguments.once
        print(json.dumps(once(way, name, Path(path), Path(tokenizer))))
        return
    if "DICE_RAY_DATA" not in os.environ:
        parser.error("DICE_RAY_DATA must name the folder of the real data")
    results = {}
    for name in CORPORA:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = {
                key: round(value, 2) for key, value in measure(name, arguments.rounds, Path(folder)).items()
            }
    names = list(next(iter(results.values())))
    print(f"{'':26}" + "".join(f"{name:>12}" for name in results))
    for key in names:
        print(f"{key:26}" + "".join(f"{result[key]:12,.2f}" for result in results.values()))
    print(
        "ratio: ours over theirs in tokens a second (cpu: of the processor's time, where others use it too); mb: how\n"
        f"far the memory of the process grew at its peak; large: the file {TIMES} times; warm_seconds: a new process\n"
        "opens what the cache holds"
    )
    print(json.dumps({"worst_ratio": min(result["ratio"] for result in results.values()), **results}))


if __name__ == "__main__":
    main()
