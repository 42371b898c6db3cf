"""Several learners: ranks that learn from slices of the same batches.

The first rank is the run: it collects, owns the replay, evaluates and writes the folder. It deals
the windows of every batch out, and all ranks add their gradients up. See docs/scaling.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import cloudpickle  # type: ignore[import-untyped]

from amago.agent.share import Share
from amago.config import Config, override
from amago.saved import checkpoint
from amago.scale.learn_feed import deal
from amago.scale.learn_group import Group, LearnerLostError, Seat, digest, seat
from amago.scale.learn_launch import RankProcesses, Ranks
from amago.scale.learn_rank import COUNTERS, EpochOrder, Plan, follow
from amago.scale.ray_learners import RayRanks
from amago.training.feed import PREFETCH, Feed, LocalFeed
from amago.training.run import TrainingRun


def is_follower() -> bool:
    """Whether torchrun has started this process as a rank other than the first."""
    launched = seat()
    return launched is not None and launched.rank > 0


def follow_to_the_end() -> None:
    """What such a rank does instead of running: it learns, and has nothing to report."""
    launched = seat()
    assert launched is not None
    follow(launched)


def check_control(config: Config) -> None:
    """A control is trained by the process of its run, once the run's learners are gone."""
    launched = seat()
    if config.run.control and launched is not None and launched.size > 1:
        raise ValueError(
            f"--control expected one process, got {launched.size} learners of torchrun; leave it "
            "out (--run.control False), and train the control afterwards on one process with "
            "`amago resume RUN --set run.control=True`"
        )


def start_learners(run: TrainingRun) -> Feed:
    """What feeds the learner of a run: its own sampler, or that and other ranks."""
    launched, wanted = seat(), run.config.scale.learners
    _check_windows(run, wanted)
    if launched is not None and launched.size > 1:
        if wanted not in (1, launched.size):
            raise ValueError(
                f"expected --scale.learners {launched.size} (or none) under torchrun, which "
                f"started {launched.size} ranks, got {wanted}"
            )
        _check_windows(run, launched.size)
        return _RankFeed(run, launched, None)
    if wanted == 1:
        return LocalFeed()
    ranks = _launch(run)
    try:
        return _RankFeed(run, ranks.first, ranks)
    except BaseException:
        ranks.close()
        raise


def _launch(run: TrainingRun) -> Ranks:
    """Ranks after the first: placed by Ray where there is a cluster, else beside this process."""
    if run.config.scale.address:
        return RayRanks(run.config, run.agent.discounts.device)
    return RankProcesses(run.config)


class _RankFeed:
    """The first rank's side: deals batches out and compares what the ranks have learned."""

    def __init__(self, run: TrainingRun, own: Seat, ranks: Ranks | None) -> None:
        learner = run.learner
        self._ranks = ranks
        if ranks is None:
            self._group = Group(own)
        else:
            self._group = Group(own, ranks.store, ranks.lost, ranks.gone)
        counters = {name: getattr(learner, name) for name in COUNTERS}
        snapshot = checkpoint.take(run.epoch, learner, counters)
        device = learner.agent.discounts.device
        # What auto means here, it must mean on all ranks.
        config = override(run.config, {"run.device": device.type})
        plan = Plan(config, run.env.spec, run.seed, run.custom.parts, snapshot)
        self._group.tell(cloudpickle.dumps(plan))
        self._group.use(device, config.scale.timeout_seconds)
        learner.add = self._group.add

    def shares(self, run: TrainingRun, start: int, stop: int) -> Iterator[Share]:
        self._group.tell(EpochOrder(run.epoch, stop - start))
        batches = run.sampler.batches(start, stop, PREFETCH)
        return deal(batches, self._group, run.config.optim.accumulate)

    def end_epoch(self, run: TrainingRun) -> None:
        """All ranks must hold the same weights and statistics, bit for bit."""
        found = self._group.gather(digest(run.agent.state_dict()))
        for rank, one in enumerate(found):
            if one != found[0]:
                raise LearnerLostError(
                    f"learner {rank} has other weights than the first one after epoch "
                    f"{run.epoch + 1}; statistics of custom encoders and terms must be kept in "
                    "RunningMoments (amago.nets.normalize), which all ranks share, and all nodes "
                    "need the same kind of processor and number of threads"
                )

    def timing(self) -> dict[str, float]:
        return {"learners": self._group.size}

    def close(self) -> None:
        with contextlib.suppress(LearnerLostError):
            self._group.tell(EpochOrder(-1, 0))
        self._group.close()
        if self._ranks is not None:
            self._ranks.close()


def _check_windows(run: TrainingRun, size: int) -> None:
    replay = run.config.replay
    if replay.batch_rows is None and replay.batch_size < size:
        raise ValueError(
            f"expected --replay.batch-size of at least {size} windows for {size} learners, got "
            f"{replay.batch_size}; raise it, or use fewer learners"
        )
