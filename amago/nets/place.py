"""Parts of one batch that are computed apart: on several ranks, or one after the other.

Two rules make the parts add up to the batch. Random numbers are drawn for all rows of the batch,
and a part keeps those of its own rows. Means over rows are means over the rows of all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

Add = Callable[[Tensor], Tensor]
"""Sums a tensor over all ranks."""


@dataclass(frozen=True)
class Place:
    """Where the rows and the transitions of a part lie in the whole batch."""

    rows: Int[Tensor, " M"]
    transitions: Int[Tensor, " K"]
    num_rows: int
    """Of the whole batch."""
    num_transitions: int

    @property
    def weight(self) -> float:
        """Share of the batch's transitions."""
        return len(self.transitions) / self.num_transitions

    def locate(self, count: int) -> tuple[Tensor, int]:
        """Where `count` rows or transitions lie, and among how many."""
        if count == len(self.rows):
            return self.rows, self.num_rows
        if count == len(self.transitions):
            return self.transitions, self.num_transitions
        raise ValueError(
            f"expected {len(self.rows)} rows or {len(self.transitions)} transitions of a part of "
            f"a batch, got {count}; average and draw for rows or transitions only"
        )


_CURRENT: ContextVar[tuple[Place, Add | None] | None] = ContextVar("place", default=None)


@contextmanager
def placed(place: Place | None, add: Add | None = None) -> Iterator[None]:
    """Compute what lies at `place`; None is the whole batch."""
    token = _CURRENT.set(None if place is None else (place, add))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_part() -> bool:
    """Whether what is computed now is less than a whole batch."""
    return _CURRENT.get() is not None


def draw(make: Callable[[Sequence[int]], Tensor], shape: Sequence[int], dim: int = 0) -> Tensor:
    """Random numbers for rows or transitions, which are dimension `dim` of `shape`."""
    current = _CURRENT.get()
    if current is None:
        return make(shape)
    index, total = current[0].locate(shape[dim])
    whole = make((*shape[:dim], total, *shape[dim + 1 :]))
    return whole.index_select(dim, index)


def means(*tables: Tensor) -> Sequence[Tensor]:
    """Means of [M, F] over the rows, or the transitions, of the whole batch."""
    own = [table.mean(0) for table in tables]
    place, add = _CURRENT.get() or (None, None)
    if place is None or add is None:
        return own
    index, total = place.locate(len(tables[0]))
    return add(torch.stack(own) * (len(index) / total)).unbind(0)


class RandomState:
    """Torch's global generators, of the CPU and of one device, at one moment."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._on_cpu = device, torch.get_rng_state()
        self._on_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore(self) -> None:
        torch.set_rng_state(self._on_cpu)
        if self._on_device is not None:
            torch.cuda.set_rng_state(self._on_device, self._device)
