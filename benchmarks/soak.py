"""Whether long runs stay as they are: memory, handles, files and speed over time.

    python benchmarks/soak.py [--kinds relabeling pixels workers] [--minutes 20] [--write PAGE]

Trains in a process of its own, one kind after the other, with a small replay that turns over all
the time, a checkpoint and an evaluation per epoch, and looks at it every few seconds. The first
tenth of the time fills replay and caches; of the rest, the first third is compared with the last.
Speed is counted in environment steps, and the updates that belong to them, per second of the
processor that the run and its workers spend, and per fixed piece of work that is timed alongside:
other work on the machine slows both. What grows, or gets slower, ends the program with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from statistics import median

import numpy as np

from amago.saved.header import git_commit

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
COMMON = (
    "--size tiny --run.threads 1 --run.epochs 1000000 --run.updates-per-epoch 10 "
    "--run.eval-interval 1 "
    "--run.eval-episodes 4 --env.eval-lanes 4 --run.save-interval 1 --replay.capacity 200 "
    "--optim.learning-rate 1e-9"
)
"""All parts work as ever; but an agent that gets better would change the work of an epoch."""
KINDS = {
    "relabeling": f"maze-runner {COMMON}",
    "pixels": f"pixel-recall {COMMON}",
    "workers": f"gym --env.id Pendulum-v1 --env.num-workers 2 {COMMON}",
}
MARKS = ("<!-- soak -->", "<!-- end of soak -->")
SPEED, RELATIVE = "steps per processor second", "steps per fixed work"
LIMITS = {
    "memory, MB": 1.1, "handles": 1.0, "processes": 1.0, "files": 1.0, "replay, MB": 1.1,
}  # fmt: skip
"""How many times as much there may be at the end."""
SLOWEST = 0.9
"""The share of its early speed, per fixed work, that a run has to keep; that per second alone
follows the machine's load."""
FEWEST = 12
"""Looks at a run: three for each third of the time."""
MOST_CHECKPOINTS = 3
"""The latest, the best, and one that is being written."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """What a run and its workers occupy at one moment."""

    seconds: float
    memory_mb: float
    """Resident memory of their own: mapped files, which the system can drop, are left out."""
    handles: int
    processes: int
    files: int
    """Besides those of checkpoints, of which there are one or two."""
    checkpoints: int
    replay_mb: float
    epochs: int
    env_steps: int
    cpu_seconds: float
    """Of all processes, and of those that they have seen the end of."""
    fixed_seconds: float
    """What the fixed piece of work took."""


def soak(kind: str, minutes: float, folder: Path, interval: float) -> list[Sample]:
    """Samples of one run from its first epoch on."""
    run = folder / kind
    command = [sys.executable, "-m", "amago", "train", *KINDS[kind].split(), "--run-dir", str(run)]
    with (folder / f"{kind}.log").open("wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
    start, samples = time.monotonic(), list[Sample]()
    try:
        while time.monotonic() - start < 60 * minutes:
            time.sleep(interval)
            if child.poll() is not None:
                raise RuntimeError(f"the run ended by itself ({child.returncode}): see {log.name}")
            if (run / "checkpoints" / "latest.json").exists():
                samples.append(_sample(child.pid, run, time.monotonic() - start))
    finally:
        child.send_signal(signal.SIGTERM)
        code = child.wait(600)  # a busy machine takes its time
    if code != 128 + signal.SIGTERM:
        raise RuntimeError(f"the run did not stop as asked ({code}): see {log.name}")
    if len(samples) < FEWEST:
        raise RuntimeError(
            f"{kind}: {len(samples)} looks at the run are too few to compare; raise --minutes"
        )
    return samples


def _sample(pid: int, run: Path, seconds: float) -> Sample:
    processes = _with_children(pid)
    files = [path for path in run.rglob("*") if "checkpoints" not in path.parts]
    rows = (run / "metrics.jsonl").read_bytes().rpartition(b"\n")[0].splitlines()
    return Sample(
        seconds,
        sum(_own_memory(each) for each in processes) / 2**20,
        sum(len(list(Path(f"/proc/{each}/fd").iterdir())) for each in processes),
        len(processes),
        sum(path.is_file() for path in files),
        sum(path.is_dir() for path in (run / "checkpoints").iterdir()),
        (run / "replay" / "data.mdb").stat().st_blocks * 512 / 2**20,
        len(rows),
        json.loads(rows[-1])["env_steps"],
        sum(_cpu_seconds(each) for each in processes),
        _fixed_work(),
    )


def _fixed_work() -> float:
    """Seconds of the processor for products of matrices and a loop of Python."""
    start, matrix = time.process_time(), np.ones((128, 128), np.float32)
    for _ in range(100):
        matrix = matrix @ matrix
        matrix /= matrix.max()
    sum(number * number for number in range(100_000))
    return time.process_time() - start


def _with_children(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def _own_memory(pid: int) -> int:
    rows = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(1024 * int(row[1]) for row in rows if row[0] in ("RssAnon:", "RssShmem:"))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def compare(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """The first third and the last third, without the first tenth of the time."""
    samples = samples[len(samples) // 10 :]
    size = len(samples) // 3
    early, late = samples[:size], samples[-size:]
    names = ("memory, MB", "handles", "processes", "files", "checkpoints", "replay, MB")
    columns = zip(zip(*map(astuple, early), strict=True), zip(*map(astuple, late), strict=True),
                  strict=True)  # fmt: skip
    pairs = [(median(a), median(b)) for a, b in columns]
    found = dict(zip(names, pairs[1:7], strict=True))
    speeds = (_steps_per_cpu_second(early), _steps_per_cpu_second(late))
    found[SPEED] = speeds
    fixed = [median(sample.fixed_seconds for sample in part) for part in (early, late)]
    found[RELATIVE] = (speeds[0] * fixed[0], speeds[1] * fixed[1])
    return found


def _steps_per_cpu_second(samples: list[Sample]) -> float:
    """The slope of steps over seconds, since an epoch may last longer than a look takes."""
    steps = np.array([sample.env_steps for sample in samples], float)
    seconds = np.array([sample.cpu_seconds for sample in samples])
    seconds -= seconds.mean()
    spread = float(seconds @ seconds)
    slope = float(seconds @ steps) / spread if spread else 0.0
    return slope if slope > 0 else math.nan


def table(results: dict[str, list[Sample]]) -> str:
    """One row per kind: early → late."""
    heads = list(compare(next(iter(results.values()))))
    rows = ["| run | minutes | epochs | " + " | ".join(heads) + " |",
            "|---" * (3 + len(heads)) + "|"]  # fmt: skip
    for kind, samples in results.items():
        cells = [f"{a:.3g} → {b:.3g}" for a, b in compare(samples).values()]
        last = samples[-1]
        head = f"| {kind} | {last.seconds / 60:.0f} | {last.epochs} | "
        rows.append(head + " | ".join(cells) + " |")
    return "\n".join(rows)


def growing(results: dict[str, list[Sample]]) -> list[str]:
    """What has grown beyond its limit, got slower, or could not be measured."""
    found = []
    for kind, samples in results.items():
        pairs = compare(samples)
        found += [
            f"{kind}: {name} {pairs[name][0]:.3g} → {pairs[name][1]:.3g}"
            for name, limit in LIMITS.items()
            if not pairs[name][1] <= limit * pairs[name][0]
        ]
        early, late = pairs[RELATIVE]
        if not late >= SLOWEST * early:
            found.append(f"{kind}: {RELATIVE} {early:.3g} → {late:.3g}")
        if max(sample.checkpoints for sample in samples) > MOST_CHECKPOINTS:
            found.append(f"{kind}: more than {MOST_CHECKPOINTS} checkpoints at a time")
    return found


def write(page: Path, text: str) -> None:
    """Put the table into the place that a page has for it."""
    before, first, rest = page.read_text().partition(MARKS[0])
    _, second, after = rest.partition(MARKS[1])
    if not (first and second):
        raise ValueError(f"{page} has no place for the table: it needs the marks {MARKS}")
    page.write_text(f"{before}{first}\n{text}\n{second}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--write", type=Path, help="the page whose table is written anew")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="amago-soak-"))
    results = {}
    for kind in options.kinds:
        results[kind] = soak(kind, options.minutes, folder, options.interval)
        rows = [asdict(sample) for sample in results[kind]]
        (folder / f"{kind}.json").write_text(json.dumps(rows))
        print(table({kind: results[kind]}), flush=True)
    made = f"{time.strftime('%Y-%m-%d')}, commit `{git_commit()}`"
    text = f"{made}, `--minutes {options.minutes:g}`:\n\n{table(results)}"
    print(text)
    if options.write is not None:
        write(options.write, text)
    found = growing(results)
    for line in found:
        print("GROWS:", line)
    if not found:
        shutil.rmtree(folder)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
