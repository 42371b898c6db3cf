"""Whether a collector beside the learner makes a run with a slow environment faster.

    python benchmarks/beside.py [--epochs 6] [--rounds 3] [--write docs/scaling.md]

Trains each preset without collectors, with one in sync and with one in async mode, in turn, round
by round, on an otherwise idle machine (some forty minutes). Reported are seconds per epoch, without
the first two, which warm up, and the last, which evaluates: the median over rounds of the mean.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, median

from generated import put

VARIANTS = {
    "no collector": [],
    "1 collector, sync": ["--scale.collectors", "1"],
    "1 collector, async": ["--scale.collectors", "1", "--scale.mode", "async"],
}
WARM_UP = 2


def epoch_seconds(preset: str, epochs: int, flags: list[str]) -> float:
    """Mean seconds of an epoch of one run."""
    with tempfile.TemporaryDirectory(prefix="amago-beside-") as name:
        folder = Path(name) / "run"
        fixed = {"run.epochs": epochs, "run.threads": 1, "run.eval-episodes": 2,
                 "run.final-eval-episodes": 2, "run.eval-interval": epochs, "run.report": False,
                 "run.device": "cpu"}  # fmt: skip
        options = [part for key, value in fixed.items() for part in (f"--{key}", str(value))]
        command = [sys.executable, "-m", "amago", "train", preset, "--run-dir", str(folder)]
        subprocess.run([*command, *options, *flags], check=True, stdout=subprocess.DEVNULL)
        lines = (folder / "timing.jsonl").read_text().splitlines()
    return mean(json.loads(line)["seconds"] for line in lines[WARM_UP:-1])


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
    rows = ["| preset | variant | s per epoch | all rounds | speed-up |", "|---|---|---|---|---|"]
    for preset in options.presets:
        found: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
        for _ in range(options.rounds):
            for variant, flags in VARIANTS.items():
                found[variant].append(epoch_seconds(preset, options.epochs, shared + flags))
                print(f"{preset}, {variant}: {found[variant][-1]:.2f} s per epoch", flush=True)
        alone = median(found["no collector"])
        for variant, seconds in found.items():
            every = " ".join(f"{value:.2f}" for value in seconds)
            middle = median(seconds)
            rows.append(f"| {preset} | {variant} | {middle:.2f} | {every} | {alone / middle:.2f} |")
    text = f"{os.cpu_count()} cores, load {load:.1f} before.\n\n" + "\n".join(rows)
    print(text)
    if options.write is not None:
        put(options.write, "beside", text)


if __name__ == "__main__":
    main()
