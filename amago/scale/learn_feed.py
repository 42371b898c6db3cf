"""Shares of batches on their way: the first rank reads and deals them out, ahead of time."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator

from amago.agent.share import Share, share_batch
from amago.scale.learn_group import Group
from amago.training.feed import PREFETCH
from amago.types import Batch

_LOOK_SECONDS = 0.2


def deal(batches: Iterator[Batch], group: Group, accumulate: int) -> Iterator[Share]:
    """The first rank's own shares; the others' are sent to them."""

    def made() -> Iterator[Share]:
        for batch in batches:
            own, *others = share_batch(batch, group.size, accumulate)
            for rank, share in enumerate(others, start=1):
                group.send(share, rank)
            yield own

    return _ahead(made)


def receive(count: int, group: Group) -> Iterator[Share]:
    """The shares that the first rank sends."""
    return _ahead(lambda: (group.receive() for _ in range(count)))


def _ahead(make: Callable[[], Iterator[Share]], room: int = PREFETCH) -> Iterator[Share]:
    """Items that a thread makes while earlier ones are used, up to `room` of them."""
    items: queue.Queue[Share | BaseException | None] = queue.Queue(room)
    stopped = threading.Event()

    def put(item: Share | BaseException | None) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                return items.put(item, timeout=_LOOK_SECONDS)

    def run() -> None:
        try:
            for item in make():
                put(item)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=run, name="amago-batches", daemon=True)
    thread.start()
    try:
        while (item := items.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        # Not for long: it may be waiting for a rank that is gone.
        thread.join(timeout=5.0)
