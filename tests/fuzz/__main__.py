"""Fuzzes everything that dice_ray reads, in two processes: a line a target with its faults, and as the last line JSON.

Run as `python -m tests.fuzz [--seed SEED] [--share SHARE] [TARGET ...]`: the same seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

WORKERS: Final = 2
HARD_LIMIT: Final = 4 << 30
"""Bytes from which the system refuses memory to a process, so that the machine does not suffer."""


def fuzz(name: str, seed: int, share: float) -> dict[str, Any]:
    """Fuzz one target in a process and folder of its own; its result as it prints it."""
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch:
        folder = Path(scratch).resolve() / "in"
        (folder.parent / "outside").mkdir()
        (folder.parent / "outside/secret").write_text("not to be read")
        folder.mkdir()
        own = {
            "TMPDIR": str(folder),
            "HOME": str(folder),
            "DICE_RAY_CACHE": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        own |= {"HF_HUB_OFFLINE": "1", "DICE_RAY_RUNS": str(folder / "runs"), "MLFLOW_TRACKING_URI": ""}
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--here",
            str(folder),
            "--seed",
            str(seed),
            "--share",
            str(share),
            name,
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | own, check=False)
        left = [str(file) for file in folder.parent.iterdir() if file.name not in ("in", "outside")]
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            result: dict[str, Any] = json.loads(lines[-1]) if lines else {"inputs": 0, "faults": {}}
            result["faults"]["the process ended"] = [f"exit {done.returncode}", done.stderr[-3000:]]
        else:
            result = json.loads(lines[-1])
        if left:
            result["faults"]["files beside the folder"] = [", ".join(left), ""]
        return {"name": name, **result}


def fuzz_here(name: str, folder: Path, seed: int, share: float) -> None:
    """Fuzz one target in this process, and print its result."""
    import hypothesis

    from tests.fuzz.targets import targets
    from tests.fuzz.watch import Watch

    target = targets()[name]
    inputs = target.inputs()
    resource.setrlimit(resource.RLIMIT_DATA, (HARD_LIMIT, HARD_LIMIT))
    os.chdir(folder)
    watch, num = Watch(folder), 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=max(1, round(share * target.num)),
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )
    @hypothesis.given(inputs)
    def attack(given: Any) -> None:
        nonlocal num
        num += 1
        watch.call(target.run, given)

    try:
        attack()
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        seconds = round(time.process_time())
        print(json.dumps({"inputs": num, "seconds": seconds, "mib": peak, "faults": watch.faults}))


def main() -> int:
    from tests.fuzz.targets import targets

    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(known))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--share", type=float, default=1.0, help="of the inputs of each target")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        fuzz_here(given.targets[0], given.here, given.seed, given.share)
        return 0
    print(f"seed {given.seed}", flush=True)
    began, results = time.monotonic(), []
    names = given.targets or sorted(known, key=lambda name: -known[name].num)
    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(partial(fuzz, seed=given.seed, share=given.share), names):
            results.append(result)
            found = f"{result['inputs']:,} inputs, {len(result['faults'])} faults"
            print(f"{result['name']}: {found}, {result.get('seconds')} s of CPU, {result.get('mib')} MiB", flush=True)
            for place, (what, shown) in result["faults"].items():
                print(f"  {place}: {what}\n    {shown[:400]}", flush=True)
    total = sum(result["inputs"] for result in results)
    num_faults = sum(len(result["faults"]) for result in results)
    by_target = {result["name"]: {"inputs": result["inputs"], "faults": len(result["faults"])} for result in results}
    print(
        json.dumps(
            {
                "seed": given.seed,
                "inputs": total,
                "faults": num_faults,
                "seconds": round(time.monotonic() - began),
                "targets": by_target,
            }
        )
    )
    return int(num_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
