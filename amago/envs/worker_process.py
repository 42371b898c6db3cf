"""What runs inside an environment worker."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

import cloudpickle  # type: ignore[import-untyped]

from amago.types import VectorEnv

Factory = Callable[[int, int], VectorEnv]
"""(first lane, number of lanes) → the vector of those lanes."""


def serve(pipe: Connection, pickled: bytes, first_lane: int, num_lanes: int) -> None:
    """The life of a worker: answer until the other end of the pipe is closed."""
    # Ctrl-C goes to the whole process group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    vector: VectorEnv | None = None
    try:
        try:
            vector = cloudpickle.loads(pickled)(first_lane, num_lanes)
            assert vector is not None
            pipe.send((None, (vector.spec, vector.tasks, vector.horizons)))
            while True:
                method, arguments = pipe.recv()
                if method in ("episodes", "curriculum"):
                    if arguments:
                        setattr(vector, method, arguments[0])
                    pipe.send((None, getattr(vector, method)))
                else:
                    pipe.send((None, getattr(vector, method)(*arguments)))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except (Exception, SystemExit):
            pipe.send((traceback.format_exc(), None))
    except (EOFError, OSError):
        pass
    finally:
        if vector is not None:
            vector.close()


def _end_with_parent() -> None:
    """A worker that hangs in an environment must not outlive a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
