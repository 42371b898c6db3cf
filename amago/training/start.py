"""How a run begins: in an empty folder, or where one of its checkpoints left it."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from amago.config import Config, from_dict, override
from amago.replay.guard import LOCK_NAME, WriterLock
from amago.training import checkpoint, kept
from amago.training.files import empty_folder
from amago.training.header import check_custom, read_header, rewrite_epochs, write_header
from amago.training.run import Custom, TrainingRun, assemble
from amago.training.trust import check_env, without_services

_LOG = logging.getLogger("amago")
_LEFT_BY_A_CRASH = {LOCK_NAME, "config.json.tmp"}
"""What a folder may hold in which no run was made yet."""


def create(
    folder: Path, config: Config, seed: int, *, preset: str = "", custom: Custom | None = None
) -> TrainingRun:
    """A new run in an empty folder."""
    custom = custom or Custom()
    if seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")
    made_here = not folder.exists()
    if not made_here:
        _check_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        lock = _lock(folder, opened)
        _check_empty(folder)
        # Nothing is trained yet; a corrected command may use the same folder.
        opened.callback(empty_folder, folder, remove=made_here)
        write_header(folder, config, seed, preset, custom.names())
        run = assemble(folder, config, seed, custom, None)
        run.lock = lock
        opened.pop_all()
        return run


def restore(
    folder: Path,
    *,
    custom: Custom | None = None,
    epoch: int | None = None,
    epochs: int | None = None,
    trust: bool = False,
) -> TrainingRun:
    """The run as its latest checkpoint left it, or from zero and imported data if there is none.

    `epoch` chooses an earlier checkpoint (0: the beginning), and what came after it goes.
    `epochs` is a new number of epochs to train in all. `trust` vouches for what the folder names:
    modules of environments, services.
    """
    custom = custom or Custom()
    read_header(folder)  # so that no lock is left in a folder that is not a run
    with contextlib.ExitStack() as opened:
        lock = _lock(folder, opened)
        header = read_header(folder)
        check_custom(folder, header, custom.names())
        config = without_services(folder, from_dict(header["config"]), trust=trust)
        check_env(folder, config, trust=trust or custom.make_env is not None)
        if epochs is not None:
            config = override(config, {"run.epochs": epochs})
        path, notes = _choose(folder, config, epoch)
        for note in notes:
            _LOG.warning(note)
        run = assemble(folder, config, header["seed"], custom, path, what_is_left=bool(notes))
        if epochs is not None:
            rewrite_epochs(folder, header, epochs)
        run.lock = lock
        opened.pop_all()
        return run


def _lock(folder: Path, opened: contextlib.ExitStack) -> WriterLock:
    """The lock of a run folder, before anything in it is read."""
    lock = WriterLock(folder, "the run")
    opened.callback(lock.release)
    return lock


def _check_empty(folder: Path) -> None:
    if any(path.name not in _LEFT_BY_A_CRASH for path in folder.iterdir()):
        raise ValueError(
            f"{folder} is not empty; continue it with `amago resume {folder}` or choose another "
            "--run-dir"
        )


def _choose(folder: Path, config: Config, epoch: int | None) -> tuple[Path | None, list[str]]:
    """The checkpoint to go on from, and what should be said about it."""
    checkpoints = folder / "checkpoints"
    if epoch is None:
        path, notes = kept.newest_sound(checkpoints, checkpoint.problem)
        if path is None:
            _check_never_saved(folder, config)
        return path, notes
    if epoch == 0:
        return None, [f"{folder} begins again at epoch 1, without its replay and metrics"]
    path = kept.find(checkpoints, str(epoch))
    known = ", ".join(kept.names(checkpoints)) or "none"
    if path is None:
        raise ValueError(f"{folder} has no checkpoint of epoch {epoch}; it has {known}")
    reason = checkpoint.problem(path)
    if reason is not None:
        raise ValueError(f"the checkpoint {path} cannot be used: {reason}; there are {known}")
    return path, [f"{folder} goes on from epoch {epoch}; what came later is dropped"]


def _check_never_saved(folder: Path, config: Config) -> None:
    """A run that has no checkpoint, but lived long enough to have one, has lost it."""
    metrics = folder / "metrics.jsonl"
    epochs = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
    first = min(config.run.save_interval, config.run.epochs)
    if epochs > first or (folder / "result.json").exists():
        raise ValueError(
            f"{folder} has trained {epochs} epochs, but its checkpoints are gone. "
            f"{kept.advice(folder / 'checkpoints')}"
        )
