"""Whether long runs stay as they are: memory, handles, files and speed over time.

    python benchmarks/soak.py [--kinds relabeling pixels workers] [--minutes 20] [--write PAGE]

Trains in a process of its own, one kind after the other, with a small replay that turns over all
the time and a checkpoint per epoch, and looks at it every few seconds. Compared are medians over
the second sixth and the last sixth of the time: the first sixth fills replay and caches. Speed is
counted in seconds of the processor per epoch, in units of what a fixed piece of work takes at the
same time, since other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median

import numpy as np

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
COMMON = (
    "--size tiny --run.threads 1 --run.epochs 1000000 --run.eval-interval 10 "
    "--run.save-interval 1 --replay.capacity 200"
)
KINDS = {
    "relabeling": f"maze-runner {COMMON}",
    "pixels": f"pixel-recall {COMMON}",
    "workers": f"gym --env.num-workers 2 --rollout.steps-per-epoch 200 {COMMON}",
}
MARKS = ("<!-- soak -->\n", "<!-- end of soak -->")
MOST_GROWTH = 1.1
NOT_JUDGED = ("disk, MB", "processor, s per epoch")
"""The disk holds one more row of metrics for every epoch; other work slows the processor."""
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
    disk_mb: float
    epochs: int
    cpu_seconds: float
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
    return samples


def _sample(pid: int, run: Path, seconds: float) -> Sample:
    processes = _with_children(pid)
    files = [path for path in run.rglob("*") if path.is_file()]
    sizes = [path.stat().st_blocks * 512 for path in files if path.exists()]
    return Sample(
        seconds,
        sum(_own_memory(each) for each in processes) / 2**20,
        sum(len(list(Path(f"/proc/{each}/fd").iterdir())) for each in processes),
        len(processes),
        len(files),
        sum(sizes) / 2**20,
        (run / "metrics.jsonl").read_bytes().count(b"\n"),
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
    return (int(fields[11]) + int(fields[12])) / _TICKS


def compare(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """Medians of the second sixth and of the last sixth."""
    size = max(len(samples) // 6, 1)
    early, late = samples[size : 2 * size], samples[-size:]
    names = ("memory, MB", "handles", "processes", "files", "disk, MB")
    columns = zip(zip(*map(astuple, early), strict=True), zip(*map(astuple, late), strict=True),
                  strict=True)  # fmt: skip
    pairs = [(median(a), median(b)) for a, b in columns]
    found = dict(zip(names, pairs[1:6], strict=True))
    speeds = (_cpu_per_epoch(early), _cpu_per_epoch(late))
    found["processor, s per epoch"] = speeds
    fixed = [median(sample.fixed_seconds for sample in part) for part in (early, late)]
    found["in units of fixed work"] = (speeds[0] / fixed[0], speeds[1] / fixed[1])
    return found


def _cpu_per_epoch(samples: list[Sample]) -> float:
    first, last = samples[0], samples[-1]
    return (last.cpu_seconds - first.cpu_seconds) / max(last.epochs - first.epochs, 1)


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
    """What has grown by more than a tenth."""
    return [
        f"{kind}: {name} {early:.3g} → {late:.3g}"
        for kind, samples in results.items()
        for name, (early, late) in compare(samples).items()
        if name not in NOT_JUDGED and late > MOST_GROWTH * early
    ]


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
        print(table({kind: results[kind]}), flush=True)
    text = f"{time.strftime('%Y-%m-%d')}:\n\n{table(results)}\n"
    print(text)
    if options.write is not None:
        before, _, rest = options.write.read_text().partition(MARKS[0])
        options.write.write_text(before + MARKS[0] + text + MARKS[1] + rest.partition(MARKS[1])[2])
    found = growing(results)
    for line in found:
        print("GROWS:", line)
    shutil.rmtree(folder)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
