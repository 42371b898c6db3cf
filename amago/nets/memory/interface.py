"""What every memory is: whole sequences in, or one step with a state."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.config import Config
from amago.nets.sequences import Sequences
from amago.types import Array


class Memory(nn.Module):
    """A causal map from encoded rows to states, for training and for acting.

    `forward` and `step` must agree: a row's state depends on its own sequence up to that row.
    All tensors, those of the acting state included, are on the device of the parameters; `x` and
    states have their dtype, `time` is int64. A custom memory is built as
    `cls(input_dim, context_length=..., horizon=...)`.
    """

    output_dim: int

    @classmethod
    def build(
        cls, config: Config, input_dim: int, *, context_length: int, horizon: int | None
    ) -> Memory:
        """The memory that a configuration describes; only those in MEMORIES need it."""
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "M E"], time: Int[Tensor, " M"], sequences: Sequences
    ) -> Float[Tensor, "M D"]:
        """States of whole sequences, which lie one after the other in `x`.

        `sequences.pad(x)` gives them side by side, [B, T, E], and `sequences.unpad` goes back.
        """
        raise NotImplementedError

    def initial_state(self, num_lanes: int) -> Any:
        """What `step` remembers before the first row."""
        raise NotImplementedError

    def select(self, state: Any, lanes: Array) -> Any:
        """The state of some lanes, by index: those that still act."""
        raise NotImplementedError

    def announce(self, state: Any, reset: Array) -> None:
        """Called before `step` with the lanes, [N] bool, that start from scratch.

        For memories that keep books on the CPU: `time` says the same, but may be on a GPU.
        """

    def step(
        self, x: Float[Tensor, "N E"], time: Int[Tensor, " N"], state: Any
    ) -> tuple[Float[Tensor, "N D"], Any]:
        """States after one more row of every lane; a lane whose `time` is 0 forgets first."""
        raise NotImplementedError
