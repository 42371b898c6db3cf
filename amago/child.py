"""What a child process owes its parent: it reports errors, and ends when the parent does."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection


@contextlib.contextmanager
def reporting_to(pipe: Connection) -> Iterator[None]:
    """The life of a child that answers (None, answer) through a pipe until it is closed.

    An error is answered as (traceback, None) and ends the child.
    """
    # Ctrl-C goes to the whole process group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        try:
            yield
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except (Exception, SystemExit):
            pipe.send((traceback.format_exc(), None))
    except (EOFError, OSError):
        pass


def _end_with_parent() -> None:
    """A child that hangs must not outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
