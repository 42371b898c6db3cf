"""Valid rows without their padding: M rows, sequence after sequence."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor


class Packing:
    """Where the rows of a right-padded batch [B, T] lie when padding is left out.

    Sequences are packed from long to short, so that those of one length lie side by side:
    `runs` lists (how many sequences, of which length). A batch without padding keeps its
    order and is packed by a view.
    """

    def __init__(self, valid: Bool[Tensor, "B T"]) -> None:
        batch, width = valid.shape
        self.shape = (batch, width)
        lengths = valid.sum(1).tolist()
        self.full = min(lengths, default=0) == width
        order = list(range(batch)) if self.full else sorted(range(batch), key=lambda b: -lengths[b])
        self.lengths = [lengths[b] for b in order if lengths[b]]
        self.runs = [(len(list(run)), length) for length, run in groupby(self.lengths)]
        self._device = valid.device
        self._index: Tensor | None = None
        if not self.full:
            rows = torch.arange(width).expand(batch, width) + width * torch.arange(batch)[:, None]
            kept = [rows[b, : lengths[b]] for b in order]
            self._index = torch.cat(kept).to(self._device)

    def __len__(self) -> int:
        return sum(self.lengths)

    def pack(self, x: Tensor) -> Tensor:
        """[B, T, ...] → [M, ...]."""
        flat = x.flatten(0, 1)
        return flat if self._index is None else take(flat, self._index)

    def pad(self, x: Tensor) -> Tensor:
        """[M, ...] → [B, T, ...], zero where nothing lies."""
        flat = x if self._index is None else put(x, self._index, self.shape[0] * self.shape[1])
        return _batched(flat, self.shape)

    def drop_last(self, x: Tensor) -> Tensor:
        """Rows [M, ...] without the last one of every sequence: where transitions begin."""
        if self.full:
            return _batched(x, self.shape)[:, :-1].flatten(0, 1)
        return take(x, self._inner[0])

    def drop_first(self, x: Tensor) -> Tensor:
        """Rows [M, ...] without the first one of every sequence: where transitions end."""
        if self.full:
            return _batched(x, self.shape)[:, 1:].flatten(0, 1)
        return take(x, self._inner[1])

    def last_rows(self) -> Bool[Tensor, " M"]:
        """Which rows are the last of their sequence."""
        flags = torch.zeros(len(self), dtype=torch.bool)
        flags[torch.tensor(self.lengths).cumsum(0) - 1] = True
        return flags.to(self._device)

    @property
    def _inner(self) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
        if not hasattr(self, "_edges"):
            begins = torch.tensor([0, *self.lengths]).cumsum(0)[:-1]
            keep = torch.ones(len(self), dtype=torch.bool)
            keep[begins] = False
            ends = keep.nonzero()[:, 0].to(self._device)
            self._edges = (ends - 1, ends)
        return self._edges


def _batched(x: Tensor, shape: tuple[int, int]) -> Tensor:
    return x.view(*shape, *x.shape[1:])


def take(x: Tensor, index: Int[Tensor, " K"]) -> Tensor:
    """x[index] for indices that are all different: its gradient is a copy, not a sum."""
    if not x.requires_grad:
        return x.index_select(0, index)
    taken: Tensor = _Take.apply(x, index)  # type: ignore[no-untyped-call]
    return taken


def put(x: Tensor, index: Int[Tensor, " K"], size: int) -> Tensor:
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
        return put(gradients[0], ctx.saved_tensors[0], ctx.size), None


class _Put(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(index)
        return x.new_zeros(size, *x.shape[1:]).index_copy_(0, index, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0].index_select(0, ctx.saved_tensors[0]), None, None
