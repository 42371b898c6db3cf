"""Looking inside the Transformer: who attends to whom, and how large activations grow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from amago.nets.memory.transformer import TransformerMemory


@dataclass(frozen=True)
class LayerDiagnosis:
    """One block on one sequence of T rows (paper Figures 14 and 15)."""

    weights: Float[Tensor, "H T T"]
    """Attention of every row (second dimension) to itself and the rows before it."""
    entropy: Float[Tensor, " H"]
    """Mean over rows of the entropy of their attention, in nats."""
    activation_max: float
    """Largest magnitude in the residual stream after the block."""


@torch.no_grad()
def diagnose(
    memory: TransformerMemory, x: Float[Tensor, "T E"], time: Int[Tensor, " T"]
) -> list[LayerDiagnosis]:
    """What every block does with one sequence, in evaluation mode.

    Materialises T×T weights, unlike the training forward: meant for single sequences.
    """
    was_training = memory.training
    memory.eval()
    try:
        return _diagnose(memory, x, time)
    finally:
        memory.train(was_training)


def _diagnose(memory: TransformerMemory, x: Tensor, time: Tensor) -> list[LayerDiagnosis]:
    x, rotation = memory.embed_rows(x, time, F.pad(x, (0, 0, 1, 0))[:-1])
    everywhere = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device)
    # As while acting: rows that have left the context are not seen any more.
    unseen = everywhere.triu(1) | everywhere.tril(-memory.context_length)
    layers = []
    for block in memory.blocks:
        seen: list[Tensor] = []

        def mix(query: Tensor, key: Tensor, value: Tensor, seen: list[Tensor] = seen) -> Tensor:
            scores = torch.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
            weights = scores.masked_fill(unseen, -torch.inf).softmax(-1)
            seen.append(weights)
            return torch.einsum("hqk,khd->qhd", weights, value)

        x = block(x, rotation, mix)
        entropy = torch.special.entr(seen[0]).sum(-1).mean(-1)
        layers.append(LayerDiagnosis(seen[0], entropy, float(x.abs().max())))
    return layers
