"""Where the learner's batches come from: this process, or others (`scale/`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import torch

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

    def timing(self) -> dict[str, float]:
        """What is to be said of the epoch beside the loop's own times and rates."""

    def close(self) -> None: ...


class LocalFeed:
    """The learner has the batches to itself."""

    def shares(self, run: TrainingRun, start: int, stop: int) -> Iterator[Share]:
        accumulate = run.config.optim.accumulate
        for batch in run.sampler.batches(start, stop, PREFETCH):
            yield share_batch(batch, accumulate=accumulate)[0]

    def end_epoch(self, run: TrainingRun) -> None: ...

    def timing(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def uploaded(shares: Iterable[Share], device: torch.device) -> Iterator[Share]:
    """Shares on the device of the learner; to a GPU, the next one is copied during an update."""
    if device.type != "cuda":
        yield from (share.to(device) for share in shares)
        return
    copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    ahead: tuple[Share, torch.cuda.Event] | None = None
    for share in shares:
        with torch.cuda.stream(copies):
            # From pinned memory, so that this thread does not wait for the copy.
            moved = share.map(lambda x: x.pin_memory().to(device, non_blocking=True))
            made = moved, copies.record_event()
        if ahead is not None:
            yield _arrived(*ahead, device)
        ahead = made
    if ahead is not None:
        yield _arrived(*ahead, device)


def _arrived(share: Share, copied: torch.cuda.Event, device: torch.device) -> Share:
    """Let the update wait for the copy, on the GPU; its memory is not reused before the update."""
    stream = torch.cuda.current_stream(device)
    stream.wait_event(copied)

    def used(x: torch.Tensor) -> torch.Tensor:
        x.record_stream(stream)
        return x

    return share.map(used)
