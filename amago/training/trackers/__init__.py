"""Where the numbers of a run go besides its JSON lines: a table, TensorBoard, W&B."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from amago.config import Config
from amago.training.trackers.table import CsvTracker
from amago.training.trackers.tensorboard import TensorBoardTracker
from amago.training.trackers.tracker import Tracker
from amago.training.trackers.wandb import WandbTracker


def make_trackers(folder: Path, config: Config, *, exact: bool = True) -> list[Tracker]:
    """The trackers of a run, filled with the rows that its folder has.

    `exact` says that the run goes on as it would have; rows sent before still hold then.
    """
    trackers: list[Tracker] = []
    if config.run.wandb_project:  # first: it is the one that may refuse
        trackers.append(WandbTracker(folder, config, exact=exact))
    if importlib.util.find_spec("tensorboard") is not None:
        trackers.append(TensorBoardTracker(folder, config))
    return [*trackers, CsvTracker(folder)]
