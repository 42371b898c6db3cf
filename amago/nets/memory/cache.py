"""Keys and values of past steps, one ring of slots per lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amago.nets.upload import upload
from amago.types import Array

_WORTH_A_SPAN = 2048
"""Slots that must be left unread for one more span to pay for its calls."""


@dataclass(frozen=True)
class Span:
    """Neighbouring lanes that attend together."""

    lanes: slice
    slots: int
    """How many the longest of them has filled."""
    hidden: Bool[Tensor, "lanes 1 slots"] | None
    """Which slots each lane may not see; None where all lanes see all of them."""


class KeyValueCache:
    """A lane's step `n` since its reset sits in slot n mod `context_length`.

    Slot order does not matter to attention, because position is part of the keys. A full
    ring overwrites its oldest slot, so a step costs the same however often it slid. Storage
    doubles until it holds `context_length` slots.
    """

    def __init__(
        self, num_layers: int, num_lanes: int, num_heads: int, head_dim: int,
        context_length: int, like: Tensor,
    ) -> None:  # fmt: skip
        self.context_length = context_length
        slots = min(64, context_length)
        self.keys = like.new_zeros(num_layers, num_lanes, num_heads, slots, head_dim)
        self.values = torch.zeros_like(self.keys)
        self.lengths = np.zeros(num_lanes, dtype=np.int64)
        self.announced = False
        """Whether room was already made for the step to come."""
        self.last_row: Tensor | None = None
        """The encoded row of the step before, for memories that look at it again."""

    def keep(self, lanes: Array) -> None:
        """Forget all lanes but some, by index."""
        self.keys, self.values = self.keys[:, lanes], self.values[:, lanes]
        self.lengths = self.lengths[lanes]
        if self.last_row is not None:
            self.last_row = self.last_row[lanes]

    def advance(self, reset: Array) -> None:
        """Make room for one more step of every lane, after emptying the lanes that reset."""
        self.lengths[reset] = 0
        self.lengths += 1
        filled = np.minimum(self.lengths, self.context_length)
        if int(filled.max()) > self.keys.shape[3]:
            self._grow()
        slots = (self.lengths - 1) % self.context_length
        if (slots == slots[0]).all():
            self.slot = int(slots[0])
        else:
            self.slot = upload(torch.from_numpy(slots), self.keys.device)
        # A GPU has room for slots that are read for nothing, not for more kernels.
        together = [(0, len(filled))] if self.keys.device.type != "cpu" else _cut_lanes(filled)
        self.spans = [self._span(filled, *edges) for edges in together]

    def write(
        self, layer: int, key: Float[Tensor, "N H dim"], value: Float[Tensor, "N H dim"]
    ) -> None:
        """Store one layer's step of every lane."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(self.slot, int):
            keys[:, :, self.slot], values[:, :, self.slot] = key, value
        else:
            lanes = torch.arange(len(key), device=key.device)
            keys[lanes, :, self.slot], values[lanes, :, self.slot] = key, value

    def read(
        self, layer: int, span: Span
    ) -> tuple[Float[Tensor, "lanes H slots dim"], Float[Tensor, "lanes H slots dim"]]:
        """Keys and values of one layer that the span's lanes may attend to."""
        keys, values = self.keys[layer, span.lanes], self.values[layer, span.lanes]
        return keys[:, :, : span.slots], values[:, :, : span.slots]

    def _span(self, filled: Array, start: int, stop: int) -> Span:
        filled = filled[start:stop]
        slots, hidden = int(filled.max()), None
        if filled.min() < slots:
            unseen = np.arange(slots) >= filled[:, None]
            hidden = upload(torch.from_numpy(unseen)[:, None], self.keys.device)
        return Span(slice(start, stop), slots, hidden)

    def _grow(self) -> None:
        slots = min(2 * self.keys.shape[3], self.context_length)
        for name in ("keys", "values"):
            old = getattr(self, name)
            new = old.new_zeros(*old.shape[:3], slots, old.shape[4])
            new[:, :, :, : old.shape[3]] = old
            setattr(self, name, new)

    slot: int | Int[Tensor, " N"]
    spans: list[Span]


class SideBySide(KeyValueCache):
    """Caches of one lane each as the lanes of one cache, for a single pass; nothing is copied."""

    def __init__(self, caches: Sequence[KeyValueCache]) -> None:
        self.caches, self.announced = caches, False

    def advance(self, reset: Array) -> None:
        for lane, cache in enumerate(self.caches):
            cache.advance(reset[lane : lane + 1])
        slots = [cache.spans[0].slots for cache in self.caches]
        self.spans = [Span(slice(n, n + 1), filled, None) for n, filled in enumerate(slots)]

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        for lane, cache in enumerate(self.caches):
            cache.write(layer, key[lane : lane + 1], value[lane : lane + 1])

    def read(self, layer: int, span: Span) -> tuple[Tensor, Tensor]:
        cache: KeyValueCache = self.caches[span.lanes.start]
        return cache.read(layer, cache.spans[0])

    @property
    def last_row(self) -> Tensor | None:
        """None where no lane has one; a lane without one begins, and its row is not read."""
        rows = [cache.last_row for cache in self.caches]
        known = next((row for row in rows if row is not None), None)
        if known is None:
            return None
        return torch.cat([torch.zeros_like(known) if row is None else row for row in rows])

    @last_row.setter
    def last_row(self, rows: Tensor | None) -> None:
        for lane, cache in enumerate(self.caches):
            cache.last_row = None if rows is None else rows[lane : lane + 1]


def _cut_lanes(filled: Array) -> list[tuple[int, int]]:
    """Cut the lanes where short ones would otherwise read much of what they cannot see.

    Lanes of one span all read as many slots as its longest; a lane joins the span before it
    unless that leaves more than `_WORTH_A_SPAN` more of them read for nothing.
    """
    longest = int(filled.max())
    if longest * len(filled) - int(filled.sum()) <= _WORTH_A_SPAN:
        return [(0, len(filled))]
    starts = [0, *(np.flatnonzero(np.diff(filled)) + 1).tolist()]
    edges, longest, seen = [0], 0, 0
    for start, stop in zip(starts, [*starts[1:], len(filled)], strict=True):
        own, first = int(filled[start]), edges[-1]
        wasted = longest * (start - first) - seen
        together = max(longest, own)
        seen += own * (stop - start)
        if start and together * (stop - first) - seen - wasted > _WORTH_A_SPAN:
            edges.append(start)
            longest, seen = own, own * (stop - start)
        else:
            longest = together
    return list(pairwise([*edges, len(filled)]))
