"""Settings of a run."""

from __future__ import annotations

from dataclasses import dataclass

from amago.checks import at_least, at_most

_MOST_THREADS = 1024
"""A million of them would crash the interpreter."""


@dataclass(frozen=True)
class RunSettings:
    epochs: int = 100
    """Number of epochs. Each one collects rollouts and then updates the agent."""
    max_minutes: float | None = None
    """End after the epoch in which training has taken so long, whatever `epochs` says; schedules
    still follow `epochs`. Unset: no limit."""
    updates_per_epoch: int = 50
    """Gradient updates per epoch."""
    eval_interval: int = 10
    """Epochs between evaluations; the last epoch is always evaluated."""
    eval_episodes: int = 64
    """Rollouts per evaluation."""
    final_eval_episodes: int = 200
    """Rollouts of the final test."""
    save_interval: int = 10
    """Epochs between checkpoints; the last epoch is always saved."""
    keep_interval: int | None = None
    """Keep every checkpoint whose epoch is a multiple of this; unset: keep latest and best."""
    start_from: str = ""
    """Begin with the weights of another run's latest checkpoint: its folder, that of one
    checkpoint, a packed agent or zoo:NAME. Replay, optimiser and counters start from scratch."""
    device: str = "auto"
    """Device: auto (a GPU for networks from a width of 128 on, or with images), cpu, cuda, cuda:1,
    mps."""
    bf16: bool = True
    """Shorter numbers in a GPU's products: bfloat16 while learning, TF32 elsewhere. A CPU always
    uses float32."""
    threads: int = 0
    """Threads of torch; 0: torch's own choice, without the cores of collectors beside it."""
    report: bool = True
    """Write report.html at the end: curves, a film, attention, adaptation. Takes seconds."""
    control: bool = False
    """Then train the same agent without memory, in the folder's control/; it stands beside the
    agent in tables, curves and the report."""
    wandb_project: str = ""
    """Also log to this Weights & Biases project (needs amago[wandb])."""

    def __post_init__(self) -> None:
        at_least(
            1, self, "run", "epochs", "updates_per_epoch", "eval_interval", "eval_episodes",
            "final_eval_episodes", "save_interval", "keep_interval",
        )  # fmt: skip
        at_least(0, self, "run", "threads", "max_minutes")
        at_most(_MOST_THREADS, self, "run", "threads")
