"""Settings of the learning rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least

DISCRETE_DISCOUNTS = (
    0.7, 0.9, 0.93, 0.95, 0.98, 0.99, 0.992, 0.994, 0.995, 0.997,
    0.998, 0.999, 0.9991, 0.9992, 0.9993, 0.9994, 0.9995,
)  # fmt: skip
"""Paper Table 4, discrete actions."""
_CONTINUOUS_DISCOUNTS = (0.9, 0.95, 0.99, 0.993, 0.996, 0.999)
"""Paper Table 4, continuous actions."""
_WIDE_DISCOUNTS = (0.1, 0.3, 0.5)
"""Short horizons that the "wide" set adds (paper Figure 18)."""
_SHORTEST = 2.0
"""Steps that the second discount of a ladder looks ahead; the first is 0, the reward alone."""
_LONGEST = 50.0
"""Most steps that the acting discount looks ahead, where it follows from the horizon."""
_RUNG = {"discrete": 2.5}
"""From one discount of a ladder to the next the horizon grows by about this factor."""
_WIDE_RUNG = 5.0
"""The same for other actions, where every discount costs a pass of all critics of its own."""
_MOST_DISCOUNTS = 256
_UNKNOWN_HORIZON = 200
"""Steps of a rollout where the environment does not tell."""


@dataclass(frozen=True)
class AgentSettings:
    discounts: Literal["auto", "wide", "single", "horizon"] | tuple[float, ...] = "auto"
    """Discounts learned at once: auto (the paper's set for the action kind), wide (auto and
    short horizons), single (the acting discount alone), horizon (0, then a geometric ladder
    from two steps ahead to the acting discount), or the numbers themselves."""
    acting_discount: float | None = 0.999
    """Discount of the policy that acts; added to the set when it is missing. Unset: one that
    looks half the environment's horizon ahead, at most 50 steps."""
    reward_scale: float = 10.0
    """Rewards are multiplied by this inside the loss."""
    sequence_models: Literal["shared", "target", "separate"] = "shared"
    """One encoder and memory for all; a slow copy of them beneath the target heads; or one for
    the actor and another for the critics (paper Figure 10)."""
    critics_in_actor_loss: Literal["frozen", "trained"] = "frozen"
    """Whether the actor's loss reaches the critics and the state that they see (Figure 10)."""
    encoder_in_actor_loss: Literal["trained", "frozen"] = "trained"
    """Whether the actor's losses reach encoder and memory (Figure 10)."""
    target_critics: int = 2
    """Critics drawn for the clipped TD target."""
    target_tau: float = 0.003
    """Share of the online weights that each update mixes into the target copies."""
    n_step: int = 1
    """Rewards that a TD target adds up before it bootstraps."""
    trace: float = 0.0
    """λ of tree-backup targets: a target goes on along the stored actions as far as the policy
    would have taken them, so that values travel many steps at once. 0: one step."""
    greedy: bool = False
    """Act with the most likely action instead of a sampled one, in training and evaluation."""

    def __post_init__(self) -> None:
        values = self.discounts if isinstance(self.discounts, tuple) else (0.0,)
        if not 1 <= len(values) <= _MOST_DISCOUNTS:
            raise ValueError(
                f"--agent.discounts takes 1 to {_MOST_DISCOUNTS} numbers, got {len(values)}"
            )
        for flag, value in (("discounts", max(values)), ("discounts", min(values)),
                            ("acting-discount", self.acting_discount or 0.0)):  # fmt: skip
            if not 0.0 <= value < 1.0:
                raise ValueError(
                    f"--agent.{flag} takes numbers in [0, 1), got {value}; "
                    "for the longest horizons use .999 or .9999"
                )
        if not 0.0 < self.target_tau <= 1.0:
            raise ValueError(f"--agent.target-tau must be in (0, 1], got {self.target_tau}")
        if not 0.0 <= self.trace <= 1.0:
            raise ValueError(f"--agent.trace must be in 0..1, got {self.trace}")
        at_least(1, self, "agent", "target_critics", "n_step")

    def resolve_acting(self, horizon: int | None) -> float:
        """The discount that acts."""
        if self.acting_discount is not None:
            return self.acting_discount
        ahead = min(_LONGEST, (horizon or _UNKNOWN_HORIZON) / 2)
        return round(1.0 - 1.0 / max(_SHORTEST, ahead), 6)

    def resolve_discounts(self, action_kind: str, horizon: int | None = None) -> tuple[float, ...]:
        """The discounts of a run, ascending, with the acting discount among them."""
        acting = self.resolve_acting(horizon)
        auto = DISCRETE_DISCOUNTS if action_kind == "discrete" else _CONTINUOUS_DISCOUNTS
        if isinstance(self.discounts, tuple):
            chosen = self.discounts
        else:
            chosen = {
                "auto": auto,
                "wide": _WIDE_DISCOUNTS + auto,
                "single": (),
                "horizon": _ladder(acting, _RUNG.get(action_kind, _WIDE_RUNG)),
            }[self.discounts]
        return tuple(sorted({*chosen, acting}))


def _ladder(longest: float, rung: float) -> tuple[float, ...]:
    """0, then discounts whose horizons 1/(1-γ) grow by a constant factor up to `longest`."""
    end = 1.0 / (1.0 - longest)
    if end <= _SHORTEST:
        return (0.0, longest)
    rungs = max(1, round(math.log(end / _SHORTEST) / math.log(rung)))
    steps = (_SHORTEST * (end / _SHORTEST) ** (number / rungs) for number in range(rungs))
    return (0.0, *(round(1.0 - 1.0 / step, 6) for step in steps), longest)


@dataclass(frozen=True)
class OptimSettings:
    learning_rate: float = 3e-4
    """Learning rate of AdamW."""
    weight_decay: float = 1e-4
    """Weight decay of AdamW."""
    beta2: float = 0.999
    """Decay of Adam's average of squared gradients. At .999 one burst of large gradients shrinks
    the steps of the next thousand updates."""
    grad_clip: float = 1.0
    """Gradient norm above which gradients are clipped."""
    warmup_updates: int = 500
    """Updates over which the learning rate rises linearly."""
    final_fraction: float = 1.0
    """Final learning rate as a fraction of the initial one; it falls linearly from the start."""
    accumulate: int = 1
    """Learn from a batch this many times as large (--replay.batch-size or --replay.batch-rows), in
    as many parts, one after the other, without using more memory."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "grad_clip"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"--optim.{name.replace('_', '-')} must be positive, got {getattr(self, name)}"
                )
        if not 0.0 <= self.beta2 < 1.0:
            raise ValueError(f"--optim.beta2 must be in [0, 1), got {self.beta2}")
        if not 0.0 <= self.final_fraction <= 1.0:
            raise ValueError(f"--optim.final-fraction must be in 0..1, got {self.final_fraction}")
        at_least(1, self, "optim", "accumulate")
        for name in ("weight_decay", "warmup_updates"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"--optim.{name.replace('_', '-')} must be 0 or more, got {getattr(self, name)}"
                )
