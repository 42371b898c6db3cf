"""Metrics as files first: JSON lines and a table always, trackers where there are any."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from pathlib import Path
from typing import Any

from amago.config import Config
from amago.training.trackers import make_trackers
from amago.training.trackers.tracker import Pictures

_LOG = logging.getLogger("amago")


class _JsonLines:
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
        config: Config,
        *,
        offsets: tuple[int, int] = (0, 0),
        epoch: int = 0,
        exact: bool = True,
    ) -> None:
        """`offsets` are the lengths of both files at the checkpoint of `epoch`, from which the run
        may go on `exact`ly as it did before."""
        with contextlib.ExitStack() as opened:
            self.metrics = _JsonLines(folder / "metrics.jsonl", offsets[0], epoch)
            opened.callback(self.metrics.close)
            self.timing = _JsonLines(folder / "timing.jsonl", offsets[1], epoch)
            opened.callback(self.timing.close)
            self._trackers = make_trackers(folder, config, exact=exact)
            opened.pop_all()

    def write(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.metrics.write(metrics)
        self.timing.write(timing)
        for tracker in self._trackers:
            tracker.log(metrics, timing)

    def end(self, result: dict[str, Any], pictures: Pictures) -> None:
        """The run is complete, with this result."""
        for tracker in self._trackers:
            tracker.end(result, pictures)

    @property
    def offsets(self) -> tuple[int, int]:
        """Lengths of both files."""
        return self.metrics.offset, self.timing.offset

    def sync(self) -> None:
        """Make both files durable."""
        self.metrics.sync()
        self.timing.sync()

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            for tracker in self._trackers:
                closing.callback(tracker.close)
            closing.callback(self.timing.close)
            closing.callback(self.metrics.close)


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
