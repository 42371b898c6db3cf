"""Learner ranks that add up gradients and hand batches on, over torch.distributed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun, or our own launcher, tells a rank."""
_PATIENCE = timedelta(days=7)
"""Ranks wait for the first one while it collects and evaluates. A rank that dies closes its
connections, which the others notice at once."""


class LearnerLostError(RuntimeError):
    """A rank is gone, so the others cannot go on."""


@dataclass(frozen=True)
class Seat:
    """Which rank this process is, and of how many."""

    rank: int
    size: int
    local_rank: int
    """Among the ranks of this machine: the number of its GPU."""
    address: str = "env://"
    """Where the ranks meet; by default where torchrun says."""


def seat() -> Seat | None:
    """What torchrun says; None in a process that was not launched as a rank."""
    if any(name not in os.environ for name in LAUNCHED):
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return Seat(rank, size, int(os.environ.get("LOCAL_RANK", rank)))


class Group:
    """The ranks of one run. Messages and batches go over gloo, sums of GPU tensors over nccl."""

    def __init__(self, seat: Seat) -> None:
        self.rank, self.size = seat.rank, seat.size
        self.lost: Callable[[], str] = lambda: "a learner is gone"
        """What is known about ranks that died."""
        with _losses(self):
            dist.init_process_group(
                "gloo", seat.address, rank=seat.rank, world_size=seat.size, timeout=_PATIENCE
            )
            # Batches travel in a thread of their own, while gradients do.
            self._batches = dist.new_group(backend="gloo", timeout=_PATIENCE)
        self._sums: dist.ProcessGroup | None = None

    def use(self, device: torch.device) -> None:
        """Sum tensors on this device; all ranks call this together."""
        if device.type == "cuda":
            with _losses(self):
                self._sums = dist.new_group(backend="nccl")

    def add(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over all ranks, the same on each; it replaces the tensor."""
        with _losses(self):
            dist.all_reduce(tensor, group=self._sums)
        return tensor

    def tell(self, message: T | None = None) -> T:
        """What the first rank says; the others say nothing."""
        box = [message]
        with _losses(self):
            dist.broadcast_object_list(box, src=0)
        told: Any = box[0]
        return told  # type: ignore[no-any-return]

    def gather(self, item: T) -> list[T]:
        """Every rank's item, on every rank."""
        items: list[Any] = [None] * self.size
        with _losses(self):
            dist.all_gather_object(items, item)
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
