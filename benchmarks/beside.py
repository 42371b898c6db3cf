"""Whether a collector beside the learner makes a run with a slow environment faster.

    python benchmarks/beside.py [--epochs 6] [--rounds 3] [--write docs/scaling.md]

Trains each preset without collectors, with one in sync and with one in async mode, in turn, round
by round, on an otherwise idle machine (some forty minutes). Reported are seconds per epoch, without
the first two, which warm up, and the last, which evaluates: the median over rounds of the mean.
Beside them stand the seconds of the processor that the run's own process needed, which other work
hardly changes, and what they allow at best: a collector can take collecting away, no more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from generated import put

VARIANTS = {
    "no collector": [],
    "1 collector, sync": ["--scale.collectors", "1"],
    "1 collector, async": ["--scale.collectors", "1", "--scale.mode", "async"],
}
WARM_UP = 2
HEAD = """\
| preset | variant | s per epoch | all rounds | CPU s: collecting + learning | speed-up | at best |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Epoch:
    """Means over the epochs of one run."""

    seconds: float
    collecting: float
    """CPU seconds of the run's own process."""
    learning: float


def measure(preset: str, epochs: int, flags: list[str]) -> Epoch:
    """An epoch of one run."""
    with tempfile.TemporaryDirectory(prefix="amago-beside-") as name:
        folder = Path(name) / "run"
        fixed = {"run.epochs": epochs, "run.threads": 1, "run.eval-episodes": 2,
                 "run.final-eval-episodes": 2, "run.eval-interval": epochs, "run.report": False,
                 "run.device": "cpu"}  # fmt: skip
        options = [part for key, value in fixed.items() for part in (f"--{key}", str(value))]
        command = [sys.executable, "-m", "amago", "train", preset, "--run-dir", str(folder)]
        subprocess.run([*command, *options, *flags], check=True, stdout=subprocess.DEVNULL)
        lines = (folder / "timing.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[WARM_UP:-1]]
    names = ("seconds", "collect_cpu_seconds", "learn_cpu_seconds")
    return Epoch(*(mean(row[name] for row in rows) for name in names))


def table(preset: str, found: dict[str, list[Epoch]]) -> list[str]:
    """A row per variant."""
    alone = found["no collector"]
    before = median(epoch.seconds for epoch in alone)
    collecting = median(epoch.collecting for epoch in alone)
    learning = median(epoch.learning for epoch in alone)
    best = (collecting + learning) / max(collecting, learning)
    rows = []
    for variant, epochs in found.items():
        every = " ".join(f"{epoch.seconds:.2f}" for epoch in epochs)
        middle = median(epoch.seconds for epoch in epochs)
        own = [median(getattr(e, name) for e in epochs) for name in ("collecting", "learning")]
        cells = [preset, variant, f"{middle:.2f}", every, f"{own[0]:.2f} + {own[1]:.2f}",
                 f"{before / middle:.2f}", f"{best:.2f}" if "async" in variant else ""]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=["crafter", "half-cheetah-velocity"])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", nargs="*", default=[], help="key=value, in all runs")
    parser.add_argument("--write", type=Path, help="page that has a place for the table")
    options = parser.parse_args()
    if options.epochs <= WARM_UP + 1:
        parser.error(f"--epochs must be more than {WARM_UP + 1}, got {options.epochs}")
    shared = [part for item in options.set for part in ("--" + item).split("=", 1)]
    load = os.getloadavg()[0]
    rows = [HEAD]
    for preset in options.presets:
        found: dict[str, list[Epoch]] = {variant: [] for variant in VARIANTS}
        for _ in range(options.rounds):
            for variant, flags in VARIANTS.items():
                found[variant].append(measure(preset, options.epochs, shared + flags))
                last = found[variant][-1].seconds
                print(f"{preset}, {variant}: {last:.2f} s per epoch", flush=True)
        rows += table(preset, found)
    text = f"{os.cpu_count()} cores, load {load:.1f} before.\n\n" + "\n".join(rows)
    print(text)
    if options.write is not None:
        put(options.write, "beside", text)


if __name__ == "__main__":
    main()
