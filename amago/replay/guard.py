"""Where a store may live, and that it has one writer at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_NETWORK_FILE_SYSTEMS = frozenset(
    ("afs", "beegfs", "ceph", "cifs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "sshfs")
)
LOCK_NAME = "writer.lock"
_writers_here: set[Path] = set()


def check_place(path: Path, mounts: Path = Path("/proc/mounts")) -> None:
    """ValueError where LMDB cannot work: the path of a file, or a network file system."""
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not existing.is_dir():
        raise ValueError(
            f"expected {path} to be a directory for the replay store, got the file {existing}; "
            "choose another path"
        )
    kind = _file_system(existing, mounts)
    if kind.removeprefix("fuse.") in _NETWORK_FILE_SYSTEMS:
        raise ValueError(
            f"expected {path} to be on a local disk, because memory-mapped replay is unsafe on "
            f"network file systems, got {kind}; choose a path on a local disk"
        )


def _file_system(path: Path, mounts: Path) -> str:
    """The type of the file system that holds a path; empty when the system does not tell."""
    if not mounts.exists():
        return ""
    rows = [line.split() for line in mounts.read_text().splitlines()]
    # /proc/mounts writes blanks as octal escapes; a later mount hides an earlier one.
    points = {Path(row[1].replace("\\040", " ")): row[2] for row in rows}
    return next((points[place] for place in (path, *path.parents) if place in points), "")


class WriterLock:
    """The exclusive right to write to a directory, until release or the process's death."""

    def __init__(self, path: Path, what: str = "the replay store") -> None:
        self._path = path.resolve()
        # Record locks belong to a process: they do not outlive it through forked children,
        # but they do not exclude a second lock of the same process either.
        if self._path in _writers_here:
            raise _taken(what, path, "this process")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path / LOCK_NAME, flags, 0o666)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            holder = os.read(self._file, 32).decode() or "unknown"
            os.close(self._file)
            raise _taken(what, path, f"process {holder}") from error
        except OSError:
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())
        _writers_here.add(self._path)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            _writers_here.discard(self._path)
        self._file = -1


def _taken(what: str, path: Path, holder: str) -> ValueError:
    return ValueError(
        f"expected to be the only writer of {what} {path}, but {holder} has it open; "
        "wait for it, stop it, or choose another path; nothing was changed"
    )
