"""A recurrent memory."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.config import Config
from amago.nets.memory.interface import Memory
from amago.nets.sequences import Sequences
from amago.types import Array


class GRUMemory(Memory):
    """Stacked GRU layers, then a linear layer and a LayerNorm; as wide and deep as the Transformer
    that it replaces."""

    def __init__(self, input_dim: int, width: int, num_layers: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_dim, width, num_layers, batch_first=True)
        self.project = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.output_dim = width

    @classmethod
    def build(
        cls, config: Config, input_dim: int, *, context_length: int, horizon: int | None
    ) -> GRUMemory:
        return cls(input_dim, config.transformer.model_dim, config.transformer.num_layers)

    def forward(
        self, x: Float[Tensor, "M E"], time: Int[Tensor, " M"], sequences: Sequences
    ) -> Float[Tensor, "M D"]:
        # A recurrence runs through time with all sequences side by side.
        hidden, _ = self.gru(sequences.pad(x))
        states: Tensor = self.norm(self.project(sequences.unpad(hidden)))
        return states

    def initial_state(self, num_lanes: int) -> Float[Tensor, "layers N hidden"]:
        weight = self.project.weight
        return weight.new_zeros(self.gru.num_layers, num_lanes, self.gru.hidden_size)

    def select(
        self, state: Float[Tensor, "layers N hidden"], lanes: Array
    ) -> Float[Tensor, "layers n hidden"]:
        return state[:, lanes]

    def step(
        self,
        x: Float[Tensor, "N E"],
        time: Int[Tensor, " N"],
        state: Float[Tensor, "layers N hidden"],
    ) -> tuple[Float[Tensor, "N D"], Float[Tensor, "layers N hidden"]]:
        alive = (time != 0).to(x.dtype)
        hidden, state = self.gru(x[:, None], state * alive[None, :, None])
        return self.norm(self.project(hidden[:, 0])), state
