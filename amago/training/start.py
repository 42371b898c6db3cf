"""How a run begins: in an empty folder, or where one of its checkpoints left it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amago.config import Config, differences, from_dict
from amago.replay.guard import LOCK_NAME, WriterLock
from amago.saved import checkpoint, kept
from amago.saved.files import empty_folder
from amago.saved.header import (
    check_custom,
    check_kept,
    go_on_command,
    lacks_control,
    read_header,
    rewrite_header,
    write_header,
)
from amago.saved.lost import lost_checkpoints
from amago.saved.trust import check_address, check_env, without_services
from amago.training.assemble import assemble
from amago.training.changes import changed, check_goes_on, remembered
from amago.training.run import Custom, TrainingRun

_LOG = logging.getLogger("amago")
_LEFT_BY_A_CRASH = {LOCK_NAME, "config.json.tmp"}
"""What a folder may hold in which no run was made yet."""


def create(
    folder: Path,
    config: Config,
    seed: int,
    *,
    preset: str = "",
    custom: Custom | None = None,
    overwrite: bool = False,
    baseline: Mapping[str, Any] | None = None,
) -> TrainingRun:
    """A new run in an empty folder; `overwrite` empties that of another run first."""
    custom = custom or Custom()
    with contextlib.ExitStack() as opened:
        lock = claim(folder, seed, opened, overwrite=overwrite)
        write_header(folder, config, seed, preset, custom.names(), baseline)
        run = assemble(folder, config, seed, custom, None)
        run.lock = lock
        opened.pop_all()
        return run


def claim(
    folder: Path, seed: int, opened: contextlib.ExitStack, *, overwrite: bool = False
) -> WriterLock:
    """The lock of an empty folder for a new run; `opened` gives both back if the run fails."""
    if seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")
    made_here = not folder.exists()
    if overwrite and is_run(folder):
        _remove_run(folder)
    elif not made_here:
        _check_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder, opened)
    _check_empty(folder)
    # Nothing is trained yet; a corrected command may use the same folder.
    opened.callback(empty_folder, folder, remove=made_here)
    return lock


def restore(
    folder: Path,
    *,
    custom: Custom | None = None,
    epoch: int | None = None,
    epochs: int | str | None = None,
    changes: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> TrainingRun:
    """The run as its latest checkpoint left it, or from zero and imported data if there is none.

    `epoch` chooses an earlier checkpoint (0: the beginning), and what came after it goes.
    `epochs` is a new number of epochs to train in all, or "+50" more; `changes` are other
    settings, by their dotted names. `trust` vouches for what the folder names: modules of
    environments, services.
    """
    custom = custom or Custom()
    check_kept(folder, read_header(folder))  # so that no lock is left where nothing can go on
    with contextlib.ExitStack() as opened:
        lock = _lock(folder, opened)
        header = read_header(folder)
        check_custom(folder, header, custom.names())
        old = from_dict(header["config"])
        check_env(folder, old.env, trust=trust, named=custom.make_env is not None)
        named = {key.replace("-", "_") for key in changes or {}}
        check_address(folder, old, trust=trust or "scale.address" in named)
        new = changed(folder, old, changes or {}, epochs)
        path, notes = _choose(folder, old, epoch)
        done = 0 if path is None else int(path.name)
        check_goes_on(folder, done, old, new)
        for note in notes:
            _LOG.warning(note)
        config = without_services(folder, new, trust=trust or "run.wandb_project" in named)
        run = assemble(folder, config, header["seed"], custom, path, what_is_left=bool(notes))
        if differences(old, new):
            rewrite_header(folder, remembered(header, old, new, done), new)
        run.lock = lock
        _say_finished(run)
        opened.pop_all()
        return run


def take_up(
    folder: Path, config: Config, seed: int, *, custom: Custom | None = None
) -> TrainingRun:
    """The run of a folder, continued with settings that its caller gives once more."""
    header = read_header(folder)
    if header["seed"] != seed:
        raise ValueError(
            f"{folder} has the seed {header['seed']}, got {seed}; resume it with its own seed, or "
            "choose another --run-dir"
        )
    found = differences(from_dict(header["config"]), config)
    changes = {key: after for key, (_, after) in found.items()}
    return restore(folder, custom=custom, changes=changes, trust=True)


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run."""
    return (folder / "config.json").is_file()


def _remove_run(folder: Path) -> None:
    """Empty the folder of a run that nobody is writing to."""
    read_header(folder)  # another program's folder may have a config.json, too
    lock = WriterLock(folder, "the run")
    try:
        empty_folder(folder, remove=False)
    finally:
        lock.release()


def _say_finished(run: TrainingRun) -> None:
    tested = (run.folder / "result.json").exists() and not lacks_control(run.folder)
    if run.epoch == run.config.run.epochs and tested:
        _LOG.warning(
            f"{run.folder} is finished after {run.epoch} epoch{'s' if run.epoch != 1 else ''}, and "
            f"this is its result; train on with: {go_on_command(run.folder, '+50')}"
        )


def _lock(folder: Path, opened: contextlib.ExitStack) -> WriterLock:
    """The lock of a run folder, before anything in it is read."""
    lock = WriterLock(folder, "the run")
    opened.callback(lock.release)
    return lock


def _check_empty(folder: Path) -> None:
    if any(path.name not in _LEFT_BY_A_CRASH for path in folder.iterdir()):
        raise ValueError(
            f"{folder} is not empty; continue it with `amago resume {folder}`, choose another "
            "--run-dir, or say with --exist what to do: resume, overwrite"
        )


def _choose(folder: Path, config: Config, epoch: int | None) -> tuple[Path | None, list[str]]:
    """The checkpoint to go on from, and what should be said about it."""
    checkpoints = folder / "checkpoints"
    if epoch is None:
        path, notes = kept.newest_sound(checkpoints, checkpoint.problem)
        lost = lost_checkpoints(folder, config) if path is None else None
        if lost is not None:
            raise ValueError(f"{lost}. {kept.advice(checkpoints)}")
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
