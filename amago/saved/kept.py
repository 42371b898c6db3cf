"""Which checkpoints a run has kept, and which of them it goes on from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from amago.disk import sync_path
from amago.saved.files import read_json, write_json

_EPOCH = re.compile(r"[0-9]{6}")
_MADE_HERE = re.compile(r"[0-9]{6}(\.tmp)?")
_Problem = Callable[[Path], str | None]


def point(folder: Path, name: str, epoch: int) -> None:
    """Make `latest` or `best` mean one checkpoint."""
    write_json(folder / f"{name}.json", {"checkpoint": f"{epoch:06d}"})


def kept(folder: Path) -> list[Path]:
    """All checkpoints, the newest first: real folders that are named after their epoch."""
    if not folder.is_dir():
        return []
    found = (path for path in folder.iterdir() if _EPOCH.fullmatch(path.name))
    return sorted((path for path in found if _is_real_folder(path)), reverse=True)


def find(folder: Path, name: str = "latest") -> Path | None:
    """The checkpoint that `latest`, `best` or an epoch number means; None if there is none.

    Where nothing names the latest, it is the newest.
    """
    if name.isdecimal():
        return next((path for path in kept(folder) if int(path.name) == int(name)), None)
    pointed = _pointed(folder, name)
    return next(iter(kept(folder)), None) if pointed is None and name == "latest" else pointed


def newest_sound(folder: Path, problem: _Problem) -> tuple[Path | None, list[str]]:
    """The checkpoint to go on from, and what a person should know about that choice.

    It is the latest one; the next older one where that is damaged. None means that there never
    was a checkpoint; if there was and none can be used, that is a ValueError.
    """
    paths, notes = _in_order(folder)
    for path in paths:
        reason = problem(path)
        if reason is None:
            if notes:
                notes.append(f"using the checkpoint of epoch {int(path.name)}, {path}")
            return path, notes
        if not path.is_dir():  # a trainer has replaced it meanwhile: look again
            return newest_sound(folder, problem)
        notes.append(f"the checkpoint {path} cannot be used: {reason}")
    if paths or (folder / "latest.json").exists():
        found = "; ".join(notes) or f"what {folder / 'latest.json'} names is not there"
        raise ValueError(f"{folder} has no checkpoint that can be used: {found}. {advice(folder)}")
    return None, []


def _in_order(folder: Path) -> tuple[list[Path], list[str]]:
    """The checkpoints in the order in which they may be used."""
    pointed, paths = _pointed(folder, "latest"), kept(folder)
    if pointed is None:
        missing = f"{folder / 'latest.json'} names no checkpoint: the newest one is used"
        return paths, [missing] if paths else []
    older = [path for path in paths if path.name < pointed.name]
    return [pointed, *older, *(path for path in paths if path.name > pointed.name)], []


def advice(folder: Path) -> str:
    """What to do when all checkpoints are lost."""
    return (
        "Nothing was changed. Restore the folder from a copy, or begin this run again at epoch 1, "
        f"without its replay and metrics, with `amago resume {folder.parent} --from 0`"
    )


def names(folder: Path) -> list[str]:
    """What `find` can be asked for."""
    pointers = [name for name in ("latest", "best") if find(folder, name) is not None]
    return [*pointers, *(str(int(path.name)) for path in reversed(kept(folder)))]


def prune(folder: Path, keep_interval: int | None) -> None:
    """Remove what is neither latest, best nor periodic, and what a crash left behind."""
    latest, best = find(folder, "latest"), find(folder, "best")
    for path in folder.iterdir():
        if not _MADE_HERE.fullmatch(path.name) or not _is_real_folder(path):
            continue
        if path in (latest, best):
            continue
        periodic = keep_interval and path.suffix == "" and int(path.name) % keep_interval == 0
        if not periodic or latest is None or path.name > latest.name:
            _remove(path)


def rewind(folder: Path, epoch: int, best: int | None) -> None:
    """Make an earlier checkpoint the latest; the later ones go. Safe to interrupt and repeat."""
    if epoch:
        point(folder, "latest", epoch)
    if best is not None and find(folder, str(best)) is not None:
        point(folder, "best", best)
    else:
        (folder / "best.json").unlink(missing_ok=True)
    for path in kept(folder):
        if int(path.name) > epoch:
            _remove(path)
    if not epoch:
        (folder / "latest.json").unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Remove a checkpoint: its name goes at once, so nobody sees half of it."""
    if path.suffix != ".tmp":
        hidden = path.with_name(path.name + ".tmp")
        shutil.rmtree(hidden, ignore_errors=True)
        path.rename(hidden)
        sync_path(path.parent)
        path = hidden
    shutil.rmtree(path)


def _pointed(folder: Path, name: str) -> Path | None:
    """What a pointer names, if that is one of the folder's own checkpoints."""
    try:
        value = read_json(folder / f"{name}.json")
    except (OSError, ValueError):
        return None
    epoch = value.get("checkpoint") if isinstance(value, dict) else None
    if not isinstance(epoch, str) or not _EPOCH.fullmatch(epoch):
        return None
    return folder / epoch if _is_real_folder(folder / epoch) else None


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
