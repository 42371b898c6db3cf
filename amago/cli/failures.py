"""Errors that a user or a machine can cause, as one sentence each."""

from __future__ import annotations

import errno
import os

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "your disk quota is used up; free some space",
    errno.EACCES: "it may not be read or written by this user; change its permissions",
    errno.EPERM: "it may not be changed by this user; change its permissions",
    errno.EROFS: "its file system is read-only; use a folder that can be written",
    errno.ENAMETOOLONG: "its name is too long; choose a shorter one",
    errno.ENOENT: "it is not there; was it moved or removed?",
    errno.ENOTDIR: "a part of this path is a file; choose another path",
    errno.EISDIR: "it is a folder, not a file",
    errno.EEXIST: "it exists already; choose another path",
    errno.EFBIG: "the file would be too large for this file system or a limit (ulimit -f)",
    errno.EIO: "the disk reports an error; check it and restore from a copy",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.ENOMEM: "there is not enough memory; use fewer lanes, a smaller batch or network",
    errno.ELOOP: "it is a symbolic link, which is not followed here; give the real path",
}
_OUT_OF_MEMORY = ("not enough memory", "can't allocate memory", "out of memory")


def explain(error: BaseException) -> str:
    """What happened and what to do, without a traceback."""
    if isinstance(error, OSError) and error.errno in _REASONS:
        place = error.filename if error.filename is not None else "a file of the run"
        return f"{place}: {_REASONS[error.errno]} ({error.strerror})"
    text = str(error)
    if isinstance(error, MemoryError) or any(part in text.lower() for part in _OUT_OF_MEMORY):
        first = text.splitlines()[0] if text else "no more was told"
        return f"{_REASONS[errno.ENOMEM]} ({first})"
    if "mdb_" in text and os.strerror(errno.EIO) in text:
        # What LMDB says of a write that was cut short, which a full disk does.
        return f"the disk is full or reports an error; free some space, or check it ({text})"
    for number, reason in _REASONS.items():
        # LMDB and safetensors pass on what the system said as text.
        said_by_lmdb = "mdb_" in text and os.strerror(number) in text
        if f"os error {number})" in text or said_by_lmdb:
            return f"{reason} ({text})"
    if isinstance(error, ValueError | RuntimeError | OSError | ImportError):
        return text or type(error).__name__
    return (
        f"unexpected {type(error).__name__}: {text}; this is a fault of amago, or of an "
        "environment or class that it was given; --debug shows where"
    )
