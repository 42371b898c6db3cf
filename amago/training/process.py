"""What a training process sets for itself: threads, and how memory is kept."""

from __future__ import annotations

import ctypes
import sys

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_LARGEST = 1 << 30


def prepare_process(threads: int) -> None:
    """Use this many torch threads (0: torch's choice), and keep freed memory."""
    if threads:
        torch.set_num_threads(threads)
    keep_freed_memory()


def keep_freed_memory() -> bool:
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
