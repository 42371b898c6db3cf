"""Keys and values of past steps, one ring of slots per lane."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amago.types import Array


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

    def advance(self, reset: Array) -> None:
        """Make room for one more step of every lane, after emptying the lanes that reset."""
        self.lengths[reset] = 0
        self.lengths += 1
        shortest, longest = int(self.lengths.min()), int(self.lengths.max())
        self.longest = min(longest, self.context_length)
        if self.longest > self.keys.shape[3]:
            self._grow()
        if shortest == longest:
            self.slot = (longest - 1) % self.context_length
        else:
            slots = (self.lengths - 1) % self.context_length
            self.slot = torch.from_numpy(slots).to(self.keys.device)
        self.hidden = None
        if shortest < self.longest:
            hidden = np.arange(self.longest) >= self.lengths[:, None]
            self.hidden = torch.from_numpy(hidden)[:, None].to(self.keys.device)

    def write(
        self, layer: int, key: Float[Tensor, "N H dim"], value: Float[Tensor, "N H dim"]
    ) -> tuple[Float[Tensor, "N H S dim"], Float[Tensor, "N H S dim"]]:
        """Store one layer's step and return all that the lanes may attend to."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(self.slot, int):
            keys[:, :, self.slot], values[:, :, self.slot] = key, value
        else:
            lanes = torch.arange(len(key), device=key.device)
            keys[lanes, :, self.slot], values[lanes, :, self.slot] = key, value
        return keys[:, :, : self.longest], values[:, :, : self.longest]

    def _grow(self) -> None:
        slots = min(2 * self.keys.shape[3], self.context_length)
        for name in ("keys", "values"):
            old = getattr(self, name)
            new = old.new_zeros(*old.shape[:3], slots, old.shape[4])
            new[:, :, :, : old.shape[3]] = old
            setattr(self, name, new)

    slot: int | Int[Tensor, " N"]
    longest: int
    hidden: Bool[Tensor, "N 1 S"] | None
    """Which slots each lane may not see; None where all lanes see all of them."""
