"""Settings of the networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least, flag

MemoryKind = Literal["transformer", "gru", "feedforward"]


@dataclass(frozen=True)
class EncoderSettings:
    """The timestep encoder: an MLP over one row."""

    hidden: tuple[int, ...] = (128, 128, 64)
    """Layer widths; the last one is the size of an encoded row."""
    normalize: bool = True
    """Put real-valued features through a running normaliser."""
    cnn: Literal["small", "residual"] = "small"
    """Trunk for images: strided convolutions, or IMPALA's residual blocks."""
    cnn_channels: tuple[int, ...] = (16, 32, 32)
    """Channels after each halving of an image; the last width serves all further halvings."""
    image_features: int = 64
    """Features that an image contributes to a row."""
    random_shift: int = 4
    """Pixels by which training moves images at random (a sixteenth of their side at most);
    0 switches it off. Acting never does it."""
    embedding_dim: int = 8
    """Numbers per id where one-hots would be too wide: texts, large grids, many categories."""

    def __post_init__(self) -> None:
        for name in ("hidden", "cnn_channels"):
            if not getattr(self, name) or min(getattr(self, name)) < 1:
                raise ValueError(
                    f"{flag('encoder', name)} takes widths of at least 1, got {getattr(self, name)}"
                )
        at_least(1, self, "encoder", "image_features", "embedding_dim")
        at_least(0, self, "encoder", "random_shift")


@dataclass(frozen=True)
class InstructionSettings:
    """What instructions go through, in domains that have them."""

    kind: Literal["mlp", "rnn"] = "mlp"
    """An MLP over all slots, or a GRU that reads word by word, numbers goal by goal (Crafter)."""
    hidden: tuple[int, ...] = (64, 32)
    """Layer widths (paper Table 3: 64, 32); of an RNN its state, then what follows it."""
    token_dim: int = 16
    """Numbers per word, where goals are words."""
    hide_plan: bool = False
    """Show only the current goal and what is done, not what comes next ("w/o Planning")."""

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(
                f"{flag('instruction', 'hidden')} takes widths of at least 1, got {self.hidden}"
            )
        at_least(1, self, "instruction", "token_dim")


@dataclass(frozen=True)
class TransformerSettings:
    """The long-context Transformer (paper appendix A.3)."""

    model_dim: int = 128
    """Width of the residual stream."""
    feedforward_dim: int = 512
    """Width of each block's hidden layer."""
    num_heads: int = 8
    """Attention heads."""
    num_layers: int = 2
    """Blocks."""
    dropout: float = 0.05
    """Dropout on the embedding and after each feed-forward layer."""
    position: Literal["sinusoid", "learned", "rope"] = "sinusoid"
    """How time enters: fixed sinusoids, a learned table, or rotated queries and keys."""
    activation: Literal["leaky_relu", "relu"] = "leaky_relu"
    """Non-linearity of the blocks."""
    extra_norms: bool = True
    """NormFormer's additional LayerNorms and head scales."""
    sigma_reparam: bool = True
    """Spectrally reparameterised weights (σReparam)."""

    def __post_init__(self) -> None:
        at_least(1, self, "transformer", "model_dim", "feedforward_dim", "num_heads", "num_layers")
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


@dataclass(frozen=True)
class GruSettings:
    """A recurrent memory."""

    hidden: int = 256
    """Width of the recurrent state."""
    num_layers: int = 2
    """Stacked layers."""
    output: int = 128
    """Width of the state that actor and critics see."""

    def __post_init__(self) -> None:
        at_least(1, self, "gru", "hidden", "num_layers", "output")


@dataclass(frozen=True)
class FeedforwardSettings:
    """No memory at all: a residual MLP over the current row (the "w/o Memory" ablation)."""

    width: int = 128
    """Width of the residual stream and of the state."""
    hidden: int = 512
    """Width of each block's hidden layer."""
    num_layers: int = 2
    """Blocks."""

    def __post_init__(self) -> None:
        at_least(1, self, "feedforward", "width", "hidden", "num_layers")


@dataclass(frozen=True)
class HeadSettings:
    """Actor and critics: MLPs over the memory's state."""

    actor_hidden: tuple[int, ...] = (256, 256)
    """Hidden layers of the actor."""
    critic_hidden: tuple[int, ...] = (256, 256)
    """Hidden layers of each critic."""
    num_critics: int = 4
    """Critics in the ensemble."""
    probability_floor: float = 1e-3
    """Least probability of an allowed discrete action (at most .1/A)."""
    critic: Literal["scalar", "two_hot", "hl_gauss"] = "scalar"
    """How critics represent a value: one number, or a distribution over bins of return, whose
    targets are the two nearest bins or a Gaussian around the return."""
    bins: int = 101
    """Bins of a classification critic, evenly spaced in symlog(return)."""
    return_limits: tuple[float, float] = (-20_000.0, 20_000.0)
    """Least and greatest return of the bins, after --agent.reward-scale."""
    popart: bool = True
    """Learn scalar values on a normalised scale that follows the targets (PopArt)."""
    popart_rate: float = 5e-4
    """Step of PopArt's averages."""

    def __post_init__(self) -> None:
        for name in ("actor_hidden", "critic_hidden"):
            if not getattr(self, name) or min(getattr(self, name)) < 1:
                raise ValueError(
                    f"{flag('heads', name)} takes widths of at least 1, got {getattr(self, name)}"
                )
        at_least(1, self, "heads", "num_critics")
        at_least(2, self, "heads", "bins")
        low, high = self.return_limits
        if not (low < high and low == -high):
            raise ValueError(
                "--heads.return-limits takes -x and x, so that untrained critics start near 0, "
                f"got {self.return_limits}"
            )
        at_least(0, self, "heads", "probability_floor")
        if not 0.0 < self.popart_rate <= 1.0:
            raise ValueError(f"--heads.popart-rate must be in (0, 1], got {self.popart_rate}")

    @property
    def value_width(self) -> int:
        """Outputs that represent one value."""
        return 1 if self.critic == "scalar" else self.bins
