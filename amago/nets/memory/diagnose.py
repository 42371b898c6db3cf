"""Looking inside the Transformer: who attends to whom, and how large activations grow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from amago.nets.memory.transformer import TransformerMemory, causal_mix
from amago.nets.sequences import Sequences


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


@torch.no_grad()
def activation_maxima(
    memory: TransformerMemory, x: Float[Tensor, "M E"], time: Int[Tensor, " M"], rows: Sequences
) -> dict[str, float]:
    """Largest magnitudes over all blocks and rows, of the residual stream after a block and of
    queries, keys and values (paper Figure 14). Costs one forward pass."""
    was_training = memory.training
    memory.eval()
    try:
        return _maxima(memory, x, time, rows)
    finally:
        memory.train(was_training)


def _maxima(
    memory: TransformerMemory, x: Tensor, time: Tensor, sequences: Sequences
) -> dict[str, float]:
    previous = sequences.previous(x) if memory.settings.previous_row else None
    x, rotation = memory.embed_rows(x, time, previous)
    attend = causal_mix(sequences)
    largest = dict.fromkeys(("residual", "query", "key", "value"), 0.0)

    def note(**seen: Tensor) -> None:
        for name, tensor in seen.items():
            largest[name] = max(largest[name], float(tensor.abs().max()))

    def mix(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        note(query=query, key=key, value=value)
        return attend(query, key, value)

    for block in memory.blocks:
        x = block(x, rotation, mix)
        note(residual=x)
    return largest
