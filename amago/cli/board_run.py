"""One run of the board, which ends at its bar.

python -m amago.cli.board_run TASK SEED RUN_DIR [--method BASELINE] [flags…]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from amago import api
from amago.board.tasks import TASKS
from amago.cli.baseline import baseline_options, train_baseline
from amago.cli.train import train_options
from amago.sweep.jobs import flags
from amago.training.hooks import Epoch


def main(name: str, seed: str, folder: str, *changes: str) -> None:
    task = TASKS[name]

    def at_the_bar(epoch: Epoch) -> bool:
        return task.is_reached(epoch.metrics)

    if changes[:1] == ("--method",):
        _, method, *rest = changes
        options = baseline_options(method, task.preset, [*flags(dict(task.changes)), *rest])
        options = replace(options, run_dir=Path(folder), seed=int(seed), exist="overwrite")
        train_baseline(method, Path(folder), options.config, options, task.preset, at_the_bar)
        return
    if (Path(folder) / "config.json").is_file():
        api.resume(folder, stop_when=at_the_bar, trust=True)
        return
    own = train_options(task.preset, [*flags(dict(task.changes)), *changes])
    api.train(own.config, int(seed), folder, preset=task.preset, stop_when=at_the_bar)


if __name__ == "__main__":
    main(*sys.argv[1:])
