"""Settings of the networks. `--size` sets all widths together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least, check_widths

MEMORIES = {
    "transformer": "amago.nets.memory.transformer:TransformerMemory",
    "gru": "amago.nets.memory.gru:GRUMemory",
    "feedforward": "amago.nets.memory.feedforward:FeedforwardMemory",
}
"""Where the class of each memory is; it is imported when an agent is built."""
FEEDFORWARD_FACTOR = 4
"""Width of a block's hidden layer, relative to the memory's width."""


Activation = Literal["leaky_relu", "relu"]
NEGATIVE_SLOPE: dict[Activation, float] = {"leaky_relu": 0.01, "relu": 0.0}
"""Slope of each activation function below 0."""


@dataclass(frozen=True)
class EncoderSettings:
    """The timestep encoder: an MLP over one row."""

    hidden: tuple[int, ...] = (128, 128, 64)
    """Layer widths; the last one is the size of an encoded row."""
    normalize: bool = True
    """Normalise real-valued features with running statistics."""
    cnn: Literal["small", "residual"] = "small"
    """Network for images: strided convolutions, or IMPALA's residual blocks."""
    random_shift: int = 4
    """Pixels by which training shifts images at random (at most a sixteenth of their side);
    0 switches it off. Images are not shifted while acting."""

    def __post_init__(self) -> None:
        check_widths(self, "encoder", "hidden")
        at_least(0, self, "encoder", "random_shift")


@dataclass(frozen=True)
class InstructionSettings:
    """The instruction encoder, in domains that have instructions."""

    kind: Literal["mlp", "rnn"] = "mlp"
    """An MLP over all goals, or a GRU that reads token by token (Crafter)."""
    hidden: tuple[int, ...] = (64, 32)
    """Layer widths (paper Table 3: 64, 32). For an RNN: its state, then the layers after it."""
    hide_plan: bool = False
    """Show only the current goal and which goals are done, not those to come ("w/o Planning")."""

    def __post_init__(self) -> None:
        check_widths(self, "instruction", "hidden")


@dataclass(frozen=True)
class TransformerSettings:
    """The long-context Transformer (paper appendix A.3)."""

    model_dim: int = 128
    """Width of the residual stream; also the width of a GRU or feed-forward memory."""
    num_heads: int = 8
    """Attention heads."""
    num_layers: int = 2
    """Blocks; also the layers of a GRU or feed-forward memory."""
    dropout: float = 0.05
    """Dropout on the embedding and after each feed-forward layer."""
    position: Literal["sinusoid", "learned", "rope"] = "sinusoid"
    """Position encoding: fixed sinusoids, a learned table, or rotary embeddings."""
    previous_row: bool = False
    """Every row enters together with the row before it, so that it shows a whole transition. The
    row that ends a trial shows the start of the next one; where it ended is in the row before."""
    activation: Activation = "leaky_relu"
    """Activation function of the blocks."""
    extra_norms: bool = True
    """NormFormer's additional LayerNorms and head scales."""
    sigma_reparam: bool = True
    """Spectrally reparameterised weights (σReparam)."""

    def __post_init__(self) -> None:
        at_least(1, self, "transformer", "model_dim", "num_heads", "num_layers")
        if self.model_dim % self.num_heads:
            raise ValueError(
                f"--transformer.model-dim must be a multiple of --transformer.num-heads, "
                f"got {self.model_dim} and {self.num_heads}"
            )
        if self.position in ("sinusoid", "rope") and (self.model_dim // self.num_heads) % 2:
            raise ValueError(
                f"--transformer.position {self.position} needs an even width per head, "
                f"got {self.model_dim // self.num_heads}"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"--transformer.dropout must be in [0, 1), got {self.dropout}")

    @property
    def feedforward_dim(self) -> int:
        """Width of each block's hidden layer."""
        return FEEDFORWARD_FACTOR * self.model_dim


@dataclass(frozen=True)
class HeadSettings:
    """Actor and critics: MLPs over the memory's state."""

    hidden: tuple[int, ...] = (256, 256)
    """Hidden layers of the actor and of each critic."""
    activation: Activation = "leaky_relu"
    """Activation function of the actor and the critics."""
    num_critics: int = 4
    """Critics in the ensemble."""
    layer_norm: bool = False
    """Normalise the hidden layers of the critics, so that values of actions that were never taken
    stay bounded."""
    probability_floor: float = 1e-3
    """Smallest probability of an allowed discrete action (at most .1/A)."""
    critic: Literal["scalar", "two_hot", "hl_gauss"] = "scalar"
    """How critics represent a value: one number (regression), or a distribution over bins of
    return (classification). two_hot and hl_gauss differ in how a target becomes bins."""
    popart: bool = True
    """Learn values on a normalised scale that follows the targets (PopArt): scalar ones, or the
    places of classification critics in symlog."""
    popart_rate: float = 5e-4
    """Rate of PopArt's moving averages."""

    def __post_init__(self) -> None:
        check_widths(self, "heads", "hidden")
        at_least(1, self, "heads", "num_critics")
        at_least(0, self, "heads", "probability_floor")
        if not 0.0 < self.popart_rate <= 1.0:
            raise ValueError(f"--heads.popart-rate must be in (0, 1], got {self.popart_rate}")
