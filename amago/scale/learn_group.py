"""Learner ranks that add up gradients and hand batches on, over torch.distributed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

_T = TypeVar("_T")
_LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells a rank."""
_PATIENCE = timedelta(days=7)
"""Ranks wait for the first one while it collects and evaluates. A rank that dies closes its
connections, which the others notice at once."""
_MEETING_SECONDS = 300.0
_LOOK_SECONDS = 0.1


class LearnerLostError(RuntimeError):
    """A rank is gone, so the others cannot go on."""


@dataclass(frozen=True)
class Seat:
    """Which rank this process is, and of how many."""

    rank: int
    size: int
    local_rank: int
    """Among the ranks of this machine: the number of its GPU."""
    address: str = ""
    """HOST:PORT of the first rank's store, where all meet; unset: where torchrun says."""


def seat() -> Seat | None:
    """What torchrun says; None in a process that was not launched as a rank."""
    if any(name not in os.environ for name in _LAUNCHED):
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return Seat(rank, size, int(os.environ.get("LOCAL_RANK", rank)))


def open_store(host: str) -> dist.TCPStore:
    """The store of a first rank, on a port of the system's choice."""
    store: dist.TCPStore = dist.TCPStore(  # type: ignore[attr-defined]
        host, 0, is_master=True, wait_for_workers=False
    )
    return store


class Group:
    """The ranks of one run. Messages and batches go over gloo, sums of GPU tensors over nccl."""

    def __init__(
        self,
        seat: Seat,
        store: dist.TCPStore | None = None,
        lost: Callable[[], str] = lambda: "a learner is gone",
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        """`store` is the first rank's own; `lost` says what is known about ranks that died, `gone`
        whether one has."""
        self.rank, self.size = seat.rank, seat.size
        self.lost = lost
        with _losses(self):
            if seat.address:
                store = store or _find_store(seat.address)
                _meet(seat, store, gone)
            dist.init_process_group(
                "gloo", store=store, rank=seat.rank, world_size=seat.size, timeout=_PATIENCE
            )
        self._sums: dist.ProcessGroup | None = None
        self._batches: dist.ProcessGroup | None = None

    def use(self, device: torch.device, timeout: float) -> None:
        """Sum tensors on this device, and take a rank that is silent for `timeout` seconds while
        all learn for lost; all ranks call this together."""
        limit = timedelta(seconds=timeout)
        with _losses(self):
            backend = "nccl" if device.type == "cuda" else "gloo"
            self._sums = dist.new_group(backend=backend, timeout=limit)
            # Batches travel in a thread of their own, while gradients do.
            self._batches = dist.new_group(backend="gloo", timeout=limit)

    def add(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over all ranks, the same on each; it replaces the tensor."""
        with _losses(self):
            dist.all_reduce(tensor, group=self._sums)
        return tensor

    def tell(self, message: _T | None = None) -> _T:
        """What the first rank says; the others say nothing."""
        box = [message]
        with _losses(self):
            dist.broadcast_object_list(box, src=0)
        told: Any = box[0]
        return told  # type: ignore[no-any-return]

    def gather(self, item: _T) -> list[_T]:
        """Every rank's item, on every rank, while no batch is on its way."""
        items: list[Any] = [None] * self.size
        with _losses(self):
            dist.all_gather_object(items, item, group=self._batches)
        return items

    def send(self, item: Any, rank: int) -> None:
        """Hand a share of a batch to a rank; returns when it has room for it."""
        with _losses(self):
            dist.send_object_list([item], rank, group=self._batches)

    def receive(self) -> Any:
        """The next share of a batch from the first rank."""
        box = [None]
        with _losses(self):
            dist.recv_object_list(box, 0, group=self._batches)
        return box[0]

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def _find_store(address: str) -> dist.TCPStore:
    host, _, port = address.rpartition(":")
    store: dist.TCPStore = dist.TCPStore(  # type: ignore[attr-defined]
        host, int(port), is_master=False
    )
    return store


def _meet(seat: Seat, store: dist.TCPStore, gone: Callable[[], bool]) -> None:
    """Wait until all ranks are there. A group that waits for one that is gone cannot be woken."""
    store.set(f"here/{seat.rank}", "")
    everyone = [f"here/{rank}" for rank in range(seat.size)]
    deadline = time.monotonic() + _MEETING_SECONDS
    while not store.check(everyone):
        if gone() or time.monotonic() > deadline:
            raise RuntimeError("not all learners came")
        time.sleep(_LOOK_SECONDS)


@contextmanager
def _losses(group: Group) -> Iterator[None]:
    """Turn an error of the network into one that says who is gone."""
    try:
        yield
    except RuntimeError as error:
        raise LearnerLostError(group.lost()) from error


def digest(tensors: dict[str, Tensor]) -> str:
    """One short text for all bits of some tensors."""
    total = hashlib.blake2b(digest_size=16)
    for value in tensors.values():
        flat = value.detach().cpu().contiguous().flatten()
        total.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return total.hexdigest()
