"""What a training process sets for itself, threads and how memory is kept, and what it occupies."""

from __future__ import annotations

import contextlib
import ctypes
import resource
import sys
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_LARGEST = 1 << 30


def prepare_process(threads: int) -> None:
    """Use this many torch threads (0: torch's choice), and keep freed memory."""
    if threads:
        torch.set_num_threads(threads)
    _keep_freed_memory()


def _keep_freed_memory() -> bool:
    """Stop glibc from returning large temporaries to the kernel at every update.

    Activations of megabytes are allocated and freed many times per update; mapped anew each
    time, their pages are faulted in again. Returns False where the C library is another one.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, _LARGEST))


def peak_bytes() -> int:
    """Most memory that this process had resident, ever or since `forget_peak`.

    Not getrusage's number, which on Linux starts at what the parent had when it forked.
    """
    if _STATUS.exists():
        return memory_of_process()["VmHWM"]
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def forget_peak() -> None:
    """Forget the peak so far, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def memory_of_process() -> dict[str, int]:
    """Bytes now resident, by kind: VmRSS = RssAnon (its own) + RssFile (mapped files) + ...; and
    VmHWM, the peak of VmRSS."""
    return kibibytes(_STATUS)


def kibibytes(path: Path) -> dict[str, int]:
    """The sizes in a file of /proc, in bytes."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows if row[-1] == "kB"}
