"""A user's own functions that a run calls: after every epoch, after every evaluation, to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, repr=False)
class Epoch:
    """What a callback is told when an epoch is complete."""

    run_dir: Path
    number: int
    """Epochs complete."""
    planned: int
    """Epochs that the run will train in all."""
    metrics: dict[str, Any]
    """The epoch's row of metrics.jsonl, `eval/…` among it when the epoch was evaluated."""
    timing: dict[str, Any]
    """The epoch's row of timing.jsonl."""

    @property
    def evaluated(self) -> bool:
        """Whether this epoch ended with an evaluation."""
        return "eval/return_mean" in self.metrics

    def __repr__(self) -> str:
        known = {"return": "rollout/return_mean", "eval return": "eval/return_mean"}
        parts = [f"{k} {self.metrics[v]:.4g}" for k, v in known.items() if v in self.metrics]
        return f"Epoch({', '.join([f'{self.number} of {self.planned}', *parts])})"


OnEpoch = Callable[[Epoch], object]
StopWhen = Callable[[Epoch], bool]


@dataclass(frozen=True)
class Hooks:
    """Called in the order of the fields, when the epoch can already be resumed from."""

    on_epoch: OnEpoch | None = None
    on_evaluation: OnEpoch | None = None
    stop_when: StopWhen | None = None

    def __post_init__(self) -> None:
        for name, hook in vars(self).items():
            if hook is not None and not callable(hook):
                raise ValueError(
                    f"{name} takes a function of one amago.Epoch, got {type(hook).__name__}"
                )

    def after(self, epoch: Epoch) -> bool:
        """Tell the functions of an epoch; whether the run is to end here."""
        _call("on_epoch", self.on_epoch, epoch)
        if epoch.evaluated:
            _call("on_evaluation", self.on_evaluation, epoch)
        return bool(_call("stop_when", self.stop_when, epoch))


def _call(name: str, hook: OnEpoch | None, epoch: Epoch) -> object:
    if hook is None:
        return None
    try:
        return hook(epoch)
    except Exception as error:
        error.add_note(f"raised by {name} after epoch {epoch.number} of {epoch.run_dir}")
        raise
