"""What runs inside an environment worker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from multiprocessing.connection import Connection

import cloudpickle  # type: ignore[import-untyped]

from amago.child import reporting_to
from amago.types import VectorEnv

Factory = Callable[[int, int], VectorEnv]
"""(first lane, number of lanes) → the vector of those lanes."""


def serve(pipe: Connection, pickled: bytes, first_lane: int, num_lanes: int) -> None:
    """The life of a worker: answer until the other end of the pipe is closed."""
    with contextlib.ExitStack() as opened, reporting_to(pipe):
        vector: VectorEnv = cloudpickle.loads(pickled)(first_lane, num_lanes)
        opened.callback(vector.close)
        pipe.send((None, (vector.spec, vector.tasks, vector.horizons)))
        while True:
            method, arguments = pipe.recv()
            if method in ("episodes", "curriculum", "restarts"):
                if arguments:
                    setattr(vector, method, arguments[0])
                pipe.send((None, getattr(vector, method)))
            else:
                pipe.send((None, getattr(vector, method)(*arguments)))
