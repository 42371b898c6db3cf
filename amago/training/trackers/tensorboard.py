"""TensorBoard: curves, hyperparameters, and the pictures of a complete run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from amago.config import Config, dotted
from amago.rollout.scores import COMPARED
from amago.training.trackers.tracker import (
    Pictures,
    Row,
    about,
    axis,
    final_scores,
    scalars,
    stored_rows,
)

_COMPARED = [f"{part}/{score.key}" for part in ("eval", "final") for score in COMPARED.values()]
"""Scores beside the hyperparameters."""


class TensorBoardTracker:
    """One file of events: a resumed run writes it anew from its metrics, without what it lost."""

    def __init__(self, folder: Path, config: Config) -> None:
        from torch.utils.tensorboard import SummaryWriter

        for old in (folder / "tensorboard").glob("events.out.tfevents.*"):
            old.unlink()
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))
        self._axis, self._step = axis(config), 0
        self._hyperparameters({**about(folder), **dotted(config)})
        for metrics, timing in stored_rows(folder):
            self.log(metrics, timing)

    def log(self, metrics: Row, timing: Row) -> None:
        self._step = int(metrics[self._axis])
        for name, value in scalars(metrics, timing).items():
            self._writer.add_scalar(name, value, self._step)

    def end(self, result: Row, pictures: Pictures) -> None:
        for name, value in final_scores(result).items():
            self._writer.add_scalar(name, value, self._step)
        for name, picture in vars(pictures).items():
            if picture is not None:
                self._picture(name, picture)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _hyperparameters(self, settings: Row) -> None:
        """As `add_hparams` does, which would begin a second file."""
        from torch.utils.tensorboard import summary

        simple = (bool, int, float, str)
        values = {k: v if isinstance(v, simple) else str(v) for k, v in settings.items()}
        made: Any = summary.hparams
        experiment, start, _ = made(values, dict.fromkeys(_COMPARED, 0.0))
        self._writer.file_writer.add_summary(experiment)
        self._writer.file_writer.add_summary(start)

    def _picture(self, name: str, data: bytes) -> None:
        """The file as it is: `add_figure` would draw again, `add_video` needs MoviePy."""
        from PIL import Image
        from tensorboard.compat.proto.summary_pb2 import Summary

        width, height = Image.open(io.BytesIO(data)).size
        image = Summary.Image(encoded_image_string=data, width=width, height=height, colorspace=3)
        summary = Summary(value=[Summary.Value(tag=name, image=image)])
        self._writer.file_writer.add_summary(summary, self._step)
