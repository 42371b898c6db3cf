"""Metrics as files first: JSONL always, TensorBoard when installed, W&B on request."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any


class JsonLines:
    """An append-only file of JSON objects whose length a checkpoint remembers."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._file = path.open("ab")
        self._file.truncate(offset)
        self._file.seek(offset)

    @property
    def offset(self) -> int:
        return self._file.tell()

    def write(self, row: dict[str, Any]) -> None:
        self._file.write((json.dumps(row) + "\n").encode())
        self._file.flush()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class Logger:
    """Deterministic metrics and wall-clock timing, in files of their own."""

    def __init__(
        self, folder: Path, *, offsets: tuple[int, int] = (0, 0), wandb_project: str = ""
    ) -> None:
        self.metrics = JsonLines(folder / "metrics.jsonl", offsets[0])
        self.timing = JsonLines(folder / "timing.jsonl", offsets[1])
        self._trackers = _trackers(folder, wandb_project)

    def write(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.metrics.write(metrics)
        self.timing.write(timing)
        scalars = {
            name: value
            for name, value in {**metrics, **timing}.items()
            if isinstance(value, (int, float)) and name != "epoch"
        }
        for tracker in self._trackers:
            tracker.log(scalars, int(metrics["env_steps"]))

    @property
    def offsets(self) -> tuple[int, int]:
        """Lengths of both files."""
        return self.metrics.offset, self.timing.offset

    def sync(self) -> None:
        """Make both files durable."""
        self.metrics.sync()
        self.timing.sync()

    def close(self) -> None:
        self.metrics.close()
        self.timing.close()
        for tracker in self._trackers:
            tracker.close()


class TensorBoardTracker:
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, scalars: dict[str, float], step: int) -> None:
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WandbTracker:
    def __init__(self, folder: Path, project: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError(
                f"--run.wandb-project {project} needs Weights & Biases, which is not installed: "
                "pip install -c constraints.txt 'amago[wandb]'"
            ) from error
        self._run = wandb.init(project=project, name=folder.name, dir=str(folder), resume="allow")

    def log(self, scalars: dict[str, float], step: int) -> None:
        self._run.log(scalars, step=step)

    def close(self) -> None:
        self._run.finish()


def _trackers(folder: Path, wandb_project: str) -> list[TensorBoardTracker | WandbTracker]:
    trackers: list[TensorBoardTracker | WandbTracker] = []
    if importlib.util.find_spec("tensorboard") is not None:
        trackers.append(TensorBoardTracker(folder))
    if wandb_project:
        trackers.append(WandbTracker(folder, wandb_project))
    return trackers
