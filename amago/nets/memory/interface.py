"""What every memory is: a whole window in, or one step with a state."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.nets.packing import Packing


class Memory(nn.Module):
    """A causal map from encoded rows to states, with two faces that must agree.

    `forward` sees a window of training; `step` sees one row at a time while acting, where
    a lane whose `time` is 0 starts with an empty memory. Rows of a window never attend to
    later rows, so right-padding needs no mask. A custom memory is built as
    `cls(input_dim, context_length=..., horizon=...)`.
    """

    output_dim: int

    def forward(
        self, x: Float[Tensor, "B T E"], time: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        raise NotImplementedError

    def forward_packed(
        self, x: Float[Tensor, "M E"], time: Int[Tensor, " M"], packing: Packing
    ) -> Float[Tensor, "M D"]:
        """The same for the valid rows of a batch alone; override it to spare the padding."""
        return packing.pack(self(packing.pad(x), packing.pad(time)))

    def initial_state(self, num_lanes: int) -> Any:
        raise NotImplementedError

    def step(
        self, x: Float[Tensor, "N E"], time: Int[Tensor, " N"], state: Any
    ) -> tuple[Float[Tensor, "N D"], Any]:
        raise NotImplementedError
