"""No memory at all: the "w/o Memory" ablation."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.config import Config
from amago.nets.layers import mlp
from amago.nets.memory.interface import Memory
from amago.nets.sequences import Sequences
from amago.nets.settings import FEEDFORWARD_FACTOR
from amago.types import Array


class FeedforwardMemory(Memory):
    """A residual MLP over the current row."""

    def __init__(self, input_dim: int, width: int, num_layers: int) -> None:
        super().__init__()
        self.embed = nn.Linear(input_dim, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(num_layers))
        self.blocks = nn.ModuleList(
            mlp((width, FEEDFORWARD_FACTOR * width, width)) for _ in range(num_layers)
        )
        self.final_norm = nn.LayerNorm(width)
        self.output_dim = width

    @classmethod
    def build(
        cls, config: Config, input_dim: int, *, context_length: int, horizon: int | None
    ) -> FeedforwardMemory:
        return cls(input_dim, config.transformer.model_dim, config.transformer.num_layers)

    def forward(
        self, x: Float[Tensor, "M E"], time: Int[Tensor, " M"], sequences: Sequences
    ) -> Float[Tensor, "M D"]:
        return self._apply_rows(x)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def select(self, state: None, lanes: Array) -> None:
        return None

    def step(
        self, x: Float[Tensor, "N E"], time: Int[Tensor, " N"], state: None
    ) -> tuple[Float[Tensor, "N D"], None]:
        return self._apply_rows(x), None

    def _apply_rows(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = x + block(norm(x))
        x = self.final_norm(x)
        return x
