"""How many floating-point operations one update needs.

Counted are the matrix products that the method cannot do without, 2·m·n·k each, on valid rows
only. A linear layer that learns costs three products: the output, the gradient of its weight and
the gradient of its input; the encoder's first layer needs no gradient of its input.

- encoder: all rows.
- memory: the Transformer's linear layers, all rows.
- attention: causal, so a window of n rows has n(n+1)/2 pairs per layer, each 4·d in the forward
  pass (scores and mixture) and 8·d in the backward pass. Scores that a fused kernel computes a
  second time are its own affair.
- actor: all transitions, all discounts.
- critics: all C on all transitions. Discrete actions: the policy-gradient and cloning terms reuse
  the values. Continuous actions: the critics read the replay's action (outputs, gradients of
  weights and state) and the policy's (outputs and the gradient of the action alone), tiled over
  the discounts from the second layer on and, for the action's share, in the first; the state's
  share of the first layer is needed once. Each value needs one column of the output layer.
- targets: forward only, the target actor and the drawn critics alone.

Left out: everything that is not a matrix product (norms, activations, softmax, dropout, losses,
optimiser) and σReparam's matrix-vector products, once per update. A learner that computes padding,
recomputes activations or evaluates critics that were not drawn gets no credit for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise

from amago.config import Config
from amago.types import EnvSpec


@dataclass(frozen=True)
class _Flops:
    """Of one update, by part."""

    encoder: float
    memory: float
    attention: float
    actor: float
    critics: float
    targets: float

    @property
    def total(self) -> float:
        return float(sum(astuple(self)))


def update_flops(spec: EnvSpec, config: Config, rows: Sequence[int]) -> _Flops:
    """The count for a batch of windows with this many valid rows each."""
    if config.memory != "transformer":
        raise ValueError(
            f"expected an agent whose memory is the transformer, got {config.memory!r}; "
            "operations of other memories are not counted"
        )
    if min(rows, default=0) < 2:
        raise ValueError(f"expected windows of at least 2 rows (1 transition), got {list(rows)}")
    transformer = config.transformer
    width, hidden = transformer.model_dim, transformer.feedforward_dim
    num_rows, transitions = sum(rows), sum(rows) - len(rows)
    encoder = (_input_size(spec), *config.encoder.hidden)
    block = 4 * width * width + 2 * width * hidden
    memory = encoder[-1] * width + transformer.num_layers * block
    pairs = sum(n * (n + 1) // 2 for n in rows)
    actor = _products(_actor_sizes(spec, config))
    critics, targets = _critics(spec, config)
    return _Flops(
        encoder=2.0 * num_rows * (3 * _products(encoder) - encoder[0] * encoder[1]),
        memory=2.0 * num_rows * 3 * memory,
        attention=2.0 * pairs * 3 * (2 * width) * transformer.num_layers,
        actor=2.0 * transitions * 3 * actor,
        critics=2.0 * transitions * critics,
        targets=2.0 * transitions * (actor + targets),
    )


def _input_size(spec: EnvSpec) -> int:
    """Features of one row: observation, previous action and reward, `first`, and time."""
    observed = sum(
        (item.size if item.kind == "category" else 1) * math.prod(item.shape)
        for item in spec.obs.values()
    )
    return observed + spec.action.size + 2 + (spec.horizon is not None)


def _actor_sizes(spec: EnvSpec, config: Config) -> tuple[int, ...]:
    per_discount = spec.action.size * (1 if spec.action.kind == "discrete" else 2)
    outputs = len(config.agent.resolve_discounts(spec.action.kind, spec.horizon)) * per_discount
    return (config.transformer.model_dim, *config.heads.hidden, outputs)


def _critics(spec: EnvSpec, config: Config) -> tuple[int, int]:
    """Multiply-adds per transition: of the critics that learn, of the drawn target critics."""
    state, layers = config.transformer.model_dim, config.heads.hidden
    discounts = len(config.agent.resolve_discounts(spec.action.kind, spec.horizon))
    count = config.heads.num_critics
    drawn = min(config.agent.target_critics, count)
    action = spec.action.size
    if spec.action.kind == "discrete":
        forward = _products((state, *layers, discounts * action))
        return count * 3 * forward, drawn * forward
    from_state = state * layers[0]
    from_rest = (action + 1) * layers[0]
    tail = _products((*layers, 1))
    forward = from_state + discounts * (from_rest + tail)
    taken = 3 * from_state + discounts * (2 * from_rest + 3 * tail)
    sampled = discounts * (from_rest + action * layers[0] + 2 * tail)
    return count * (taken + sampled), drawn * forward


def _products(sizes: Sequence[int]) -> int:
    """Multiply-adds of an MLP for one row."""
    return sum(size_in * size_out for size_in, size_out in pairwise(sizes))
