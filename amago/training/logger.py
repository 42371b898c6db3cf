"""Metrics as files first: JSONL always, TensorBoard when installed, W&B on request."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LOG = logging.getLogger("amago")


class JsonLines:
    """An append-only file of JSON objects whose length a checkpoint remembers."""

    def __init__(self, path: Path, offset: int = 0, epoch: int = 0) -> None:
        """Forget what was written after the checkpoint of `epoch`, when it had `offset` bytes."""
        self._file = path.open("ab")
        end = _end_of(path, offset, epoch)
        self._file.truncate(end)
        self._file.seek(end)

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
        self,
        folder: Path,
        *,
        offsets: tuple[int, int] = (0, 0),
        epoch: int = 0,
        wandb_project: str = "",
    ) -> None:
        """`offsets` are the lengths of both files at the checkpoint of `epoch`."""
        self.metrics = JsonLines(folder / "metrics.jsonl", offsets[0], epoch)
        self.timing = JsonLines(folder / "timing.jsonl", offsets[1], epoch)
        self._trackers = _trackers(folder, wandb_project)

    def write(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.metrics.write(metrics)
        self.timing.write(timing)
        for tracker in self._trackers:
            tracker.log(_scalars(metrics, timing), int(metrics["env_steps"]))

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
    """One file of events: a resumed run writes it anew from its metrics, without what it lost."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        for old in (folder / "tensorboard").glob("events.out.tfevents.*"):
            old.unlink()
        self._writer = SummaryWriter(str(folder / "tensorboard"))
        rows = (_rows(folder / name) for name in ("metrics.jsonl", "timing.jsonl"))
        for metrics, timing in zip(*rows, strict=False):
            self.log(_scalars(metrics, timing), int(metrics["env_steps"]))

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


def _scalars(metrics: dict[str, Any], timing: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in {**metrics, **timing}.items()
        if isinstance(value, (int, float)) and name != "epoch"
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from map(json.loads, file)


def _end_of(path: Path, offset: int, epoch: int) -> int:
    """Where the rows after a checkpoint begin: at its offset, unless rows were lost since."""
    with path.open("rb") as file:
        file.seek(max(offset - 1, 0))
        if offset == 0 or file.read(1) == b"\n":
            return offset
        file.seek(0)
        end = 0
        for line in file:
            try:
                complete = line.endswith(b"\n") and json.loads(line)["epoch"] <= epoch
            except (ValueError, KeyError, TypeError):
                complete = False
            if not complete:
                break
            end += len(line)
    _LOG.warning(
        f"{path} is not as long as it was at the checkpoint of epoch {epoch}: some of its rows "
        "are lost, new ones follow"
    )
    return end


def _trackers(folder: Path, wandb_project: str) -> list[TensorBoardTracker | WandbTracker]:
    trackers: list[TensorBoardTracker | WandbTracker] = []
    if importlib.util.find_spec("tensorboard") is not None:
        trackers.append(TensorBoardTracker(folder))
    if wandb_project:
        trackers.append(WandbTracker(folder, wandb_project))
    return trackers
