"""Settings of the baselines."""

from __future__ import annotations

from dataclasses import dataclass

from amago.checks import at_least


@dataclass(frozen=True)
class PpoSettings:
    """Recurrent PPO. Widths are the preset's: encoder, memory (here an LSTM's), heads."""

    learning_rate: float = 1e-3
    """Learning rate of Adam at the beginning."""
    final_fraction: float = 0.05
    """Learning rate at the end as a fraction of that; it falls with the epochs, or the minutes."""
    passes: int = 8
    """Times that an epoch's rows are learned from."""
    batch_rows: int = 400
    """Rows per gradient update, cut into sequences."""
    discount: float | None = None
    """Discount; unset: the one that amago's agent would act with."""
    gae_lambda: float = 0.95
    """Decay of the advantage estimates."""
    clip: float = 0.2
    """How far one epoch may move the probability of an action."""
    target_kl: float = 0.03
    """Learning from an epoch's rows ends once the policy has moved 1.5 times as far."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""

    def __post_init__(self) -> None:
        at_least(1, self, "ppo", "passes", "batch_rows")
        if not self.learning_rate > 0:
            raise ValueError(f"--ppo.learning-rate must be more than 0, got {self.learning_rate}")
        for name in ("discount", "gae_lambda"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value <= 1.0:
                flag = f"--ppo.{name.replace('_', '-')}"
                raise ValueError(f"{flag} must be in (0, 1], got {value}")
        if not 0.0 < self.clip < 1.0:
            raise ValueError(f"--ppo.clip must be in (0, 1), got {self.clip}")
        at_least(0, self, "ppo", "entropy", "final_fraction")
        if not self.target_kl > 0:
            raise ValueError(f"--ppo.target-kl must be more than 0, got {self.target_kl}")


@dataclass(frozen=True)
class HistorySettings:
    """Learning histories of memory-free agents, which Algorithm Distillation imitates."""

    count: int = 400
    """Histories, each of one agent in a world of its own, as long as a rollout."""
    learning_rate: float = 0.3
    """Learning rate of the tabular agents."""
    discount: float = 0.95
    """Their discount."""
    trace: float = 0.9
    """Decay of their eligibility traces."""
    noise: tuple[float, float] = (0.1, 0.02)
    """Share of random actions at the beginning and at the end of a history."""

    def __post_init__(self) -> None:
        at_least(1, self, "histories", "count")
        for name in ("learning_rate", "discount", "trace"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                flag = f"--histories.{name.replace('_', '-')}"
                raise ValueError(f"{flag} must be in [0, 1], got {getattr(self, name)}")
        if not all(0.0 <= share <= 1.0 for share in self.noise):
            raise ValueError(f"--histories.noise takes two numbers in 0..1, got {self.noise}")
