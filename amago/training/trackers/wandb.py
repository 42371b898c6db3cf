"""Weights & Biases: config, curves, pictures; a resumed run goes on as the same one."""

from __future__ import annotations

import io
import re
import secrets
from pathlib import Path
from typing import Any

from amago.config import Config, to_dict
from amago.saved.files import read_json, write_json
from amago.training.trackers.tracker import (
    Pictures,
    Row,
    about,
    axis,
    final_scores,
    scalars,
    stored_rows,
)

_STATE = "wandb.json"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class WandbTracker:
    """Sends every epoch once. What W&B keeps on disk is where W&B wants it: not in the run folder,
    whose links nobody follows."""

    def __init__(self, folder: Path, config: Config, *, exact: bool = True) -> None:
        """Unless the run goes on `exact`ly, what W&B has of later epochs is another run's."""
        project = config.run.wandb_project
        wandb = _module(project)
        self._wandb, self._state = wandb, folder / _STATE
        rows = stored_rows(folder)
        last = rows[-1][0]["epoch"] if rows else 0
        self._id, self._sent = _sent_before(self._state)
        if not self._id or (self._sent > last and not exact):
            self._id, self._sent = secrets.token_hex(4), 0
        try:
            self._run: Any = wandb.init(
                project=project,
                id=self._id,
                name=folder.name,
                resume="allow",
                config={**about(folder), **to_dict(config)},
                allow_val_change=True,
                reinit="create_new",
                settings=wandb.Settings(console="off"),
            )
        except (wandb.errors.Error, ValueError) as error:  # the latter of WANDB_… variables
            told = " ".join(str(error).split())
            raise ValueError(
                f"--run.wandb-project {project}: W&B did not start ({told}); check the name, log "
                "in with `wandb login`, or set WANDB_MODE=offline and upload later"
            ) from error
        self._axis, self._complete = axis(config), False
        self._run.define_metric("*", step_metric=self._axis)
        self._remember()
        for metrics, timing in rows:
            self.log(metrics, timing)

    def log(self, metrics: Row, timing: Row) -> None:
        epoch = metrics["epoch"]
        if epoch > self._sent:
            self._send(2 * epoch, {"epoch": epoch, **scalars(metrics, timing)})
            self._sent = epoch
            self._remember()

    def end(self, result: Row, pictures: Pictures) -> None:
        self._run.summary.update(final_scores(result))
        shown: Row = {}
        if pictures.curves is not None:
            from PIL import Image

            shown["curves"] = self._wandb.Image(Image.open(io.BytesIO(pictures.curves)))
        if pictures.film is not None:
            shown["film"] = self._wandb.Video(io.BytesIO(pictures.film), format="gif")
        if shown:
            shown |= {"epoch": result["epochs"], self._axis: result[self._axis]}
            self._send(2 * result["epochs"] + 1, shown)
        self._complete = True

    def _remember(self) -> None:
        write_json(self._state, {"id": self._id, "epoch": self._sent})

    def _send(self, step: int, values: Row) -> None:
        """W&B drops what comes with a step that it already has. So steps do not depend on how often
        a run was resumed, and every other one is for the pictures of a run that ended there."""
        self._run.log(values, step=step, commit=True)

    def close(self) -> None:
        """A run that did not come to its end is shown as failed."""
        self._run.finish(exit_code=0 if self._complete else 1)


def _module(project: str) -> Any:
    try:
        import wandb
    except ImportError as error:
        raise ValueError(
            f"--run.wandb-project {project} needs Weights & Biases, which is not installed: "
            "pip install -c constraints.txt 'amago[wandb]'"
        ) from error
    return wandb


def _sent_before(path: Path) -> tuple[str, int]:
    """The id of the W&B run that a folder has, and the last epoch that was sent."""
    state = read_json(path) if path.is_file() else None
    match state:
        case {"id": str(name), "epoch": int(epoch)} if _ID.fullmatch(name):
            return name, epoch
    return "", 0
