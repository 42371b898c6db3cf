"""A cue remembered for thousands of steps, on one core: each run begins where a shorter one ended.

    python examples/long_corridor.py --out runs/long-corridor [--seed 0] [--longest 10000]

The first stage is the preset `t-maze-1000`. Every later one takes over the weights of the one
before it (`run.start_from`) and adds a longer corridor. What was learned on shorter corridors
mostly holds there at once, so there is little noise, and few updates are needed. Stopped at any
time, the same command goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import amago
from amago.config import Config, override
from amago.training.view import make_view

CORRIDORS = (100, 300, 1_000, 3_000, 10_000, 30_000)
LONGER: dict[str, Any] = {
    "exploration.start": (0.05, 0.05),
    "exploration.end": (0.5, 0.01),
    "optim.warmup_updates": 100,
    "run.updates_per_epoch": 100,
    "run.eval_interval": 2,
    "run.save_interval": 1,
}
STAGES: dict[int, dict[str, Any]] = {
    1_000: {},
    10_000: {
        **LONGER,
        "env.num_lanes": 15,
        "env.eval_lanes": 15,
        "run.epochs": 10,
        "run.eval_episodes": 15,
        "run.final_eval_episodes": 60,
    },
    30_000: {
        **LONGER,
        "env.num_lanes": 6,
        "env.eval_lanes": 12,
        "run.epochs": 4,
        "run.eval_episodes": 12,
        "run.final_eval_episodes": 36,
    },
}
"""What each stage changes of the preset, by its longest corridor."""


def stage(longest: int, start_from: Path | None) -> Config:
    config = override(amago.preset("t-maze-1000"), {"run.threads": 1, **STAGES[longest]})
    if start_from is None:
        return config
    ids = tuple(f"{config.env.id}?corridor={n}" for n in CORRIDORS if n <= longest)
    return override(config, {"env.ids": ids, "run.start_from": str(start_from)})


def main(out: Path, seed: int, longest: int) -> None:
    before = None
    for corridor in (length for length in STAGES if length <= longest):
        folder = out / f"t-maze-{corridor}" / f"seed-{seed}"
        config = stage(corridor, before)
        view = make_view(config.run.epochs)
        if (folder / "config.json").exists():
            result = amago.resume(folder, view=view).result
        else:
            result = amago.train(config, seed, folder, preset="t-maze-1000", view=view).result
        print(f"corridors up to {corridor:,}: {result['seconds'] / 60:.0f} minutes")
        for task, summary in result["tasks"].items():
            print(f"  {task:<32} {summary['return_mean']:6.3f}")
        before = folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=int, default=max(STAGES), choices=sorted(STAGES))
    options = parser.parse_args()
    main(options.out, options.seed, options.longest)
