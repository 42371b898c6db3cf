"""Rows of several sequences, one sequence after the other: [M, ...]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from amago.nets.upload import numbers_on


class Sequences:
    """Where each of B sequences lies among M packed rows.

    All of it follows from the lengths, so nothing here waits for a device.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.lengths, self.device = tuple(lengths), torch.device(device)
        self.num_rows = sum(self.lengths)
        self.longest = max(self.lengths, default=0)
        self.equal = self.num_rows == len(self.lengths) * self.longest

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Neighbours of equal length: (how many sequences, of which length)."""
        return [(len(list(run)), length) for length, run in groupby(self.lengths)]

    def drop_last(self, x: Tensor) -> Tensor:
        """Rows [M, ...] without the last one of every sequence: where transitions begin."""
        if self.equal:
            return self._stacked(x)[:, :-1].flatten(0, 1)
        return _take(x, self._begins)

    def drop_first(self, x: Tensor) -> Tensor:
        """Rows [M, ...] without the first one of every sequence: where transitions end."""
        if self.equal:
            return self._stacked(x)[:, 1:].flatten(0, 1)
        return _take(x, self._ends)

    def previous(self, x: Tensor) -> Tensor:
        """The row before each row [M, ...] of its sequence; zeros before the first."""
        return _put(self.drop_last(x), self._ends, len(x))

    def last_rows(self) -> Bool[Tensor, " M"]:
        """Which rows are the last of their sequence."""
        flags = torch.zeros(self.num_rows, dtype=torch.bool, device=self.device)
        return flags.index_fill_(0, self._counts.cumsum(0) - 1, True)

    def owners(self) -> Int[Tensor, " M"]:
        """The number of the sequence that each row belongs to."""
        return self._repeated(self._counts, self.num_rows)

    def pad(self, x: Tensor) -> Tensor:
        """[M, ...] → [B, T, ...], side by side, with zeros after the end of a short sequence.

        For memories that step through time with all sequences at once.
        """
        if self.equal:
            return self._stacked(x)
        places = _put(x, self._places, len(self.lengths) * self.longest)
        return places.view(len(self.lengths), self.longest, *x.shape[1:])

    def unpad(self, x: Tensor) -> Tensor:
        """The inverse of `pad`."""
        flat = x.flatten(0, 1)
        return flat if self.equal else _take(flat, self._places)

    def _stacked(self, x: Tensor) -> Tensor:
        return x.view(len(self.lengths), self.longest, *x.shape[1:])

    @cached_property
    def _ends(self) -> Int[Tensor, " K"]:
        """Rows that have a row of their sequence before them."""
        size = self.num_rows - len(self.lengths)
        skipped = self._repeated(self._counts - 1, size) + 1
        return torch.arange(size, device=self.device) + skipped

    @cached_property
    def _begins(self) -> Int[Tensor, " K"]:
        return self._ends - 1

    @cached_property
    def _places(self) -> Int[Tensor, " M"]:
        """Where each row lies in the flattened result of `pad`."""
        owners = self.owners()
        # As many places as the sequences before are shorter than the longest lie empty.
        empty = (self.longest - self._counts).cumsum(0) - (self.longest - self._counts)
        return torch.arange(self.num_rows, device=self.device) + empty.index_select(0, owners)

    @cached_property
    def _counts(self) -> Int[Tensor, " B"]:
        """The lengths, on the device."""
        return numbers_on(self.device, self.lengths)

    def _repeated(self, counts: Int[Tensor, " B"], size: int) -> Int[Tensor, " size"]:
        """The number of each sequence, `counts` times each; `size` in all."""
        numbers = torch.arange(len(self.lengths), device=self.device)
        return numbers.repeat_interleave(counts, output_size=size)

    @cached_property
    def offsets(self) -> Int[Tensor, " edges"]:
        """Where each sequence begins, and where the last one ends, as kernels read it."""
        return F.pad(self._counts.cumsum(0), (1, 0)).to(torch.int32)


def _take(x: Tensor, index: Int[Tensor, " K"]) -> Tensor:
    """x[index] for indices that are all different: its gradient is a copy, not a sum."""
    if not x.requires_grad:
        return x.index_select(0, index)
    taken: Tensor = _Take.apply(x, index)  # type: ignore[no-untyped-call]
    return taken


def _put(x: Tensor, index: Int[Tensor, " K"], size: int) -> Tensor:
    """Zeros [size, ...] with x at `index`; the indices are all different."""
    placed: Tensor = _Put.apply(x, index, size)  # type: ignore[no-untyped-call]
    return placed


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.size = len(x)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _put(gradients[0], ctx.saved_tensors[0], ctx.size), None


class _Put(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(index)
        return x.new_zeros(size, *x.shape[1:]).index_copy_(0, index, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0].index_select(0, ctx.saved_tensors[0]), None, None
