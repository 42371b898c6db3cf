"""Where the learner's batches come from: this process, or others (`scale/`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from amago.agent.share import Share, share_batch

if TYPE_CHECKING:
    from amago.training.run import TrainingRun

PREFETCH = 2
"""Batches prepared ahead of the learner."""


class Feed(Protocol):
    """This rank's shares of the batches of a run."""

    def shares(self, run: TrainingRun, start: int, stop: int) -> Iterator[Share]:
        """Those of the updates start..stop-1, in order."""

    def end_epoch(self, run: TrainingRun) -> None:
        """All of them were learned from."""

    def close(self) -> None: ...


class LocalFeed:
    """The learner has the batches to itself."""

    def shares(self, run: TrainingRun, start: int, stop: int) -> Iterator[Share]:
        accumulate = run.config.optim.accumulate
        for batch in run.sampler.batches(start, stop, PREFETCH):
            yield share_batch(batch, accumulate=accumulate)[0]

    def end_epoch(self, run: TrainingRun) -> None: ...

    def close(self) -> None: ...
