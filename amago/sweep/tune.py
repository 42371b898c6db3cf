"""Searching settings with Optuna, on the queue of sweeps: resumable, and bad runs end early."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amago.sweep.jobs import Job, parse_overrides
from amago.sweep.progress import Progress
from amago.sweep.queue import Queue
from amago.sweep.space import Dimension

if TYPE_CHECKING:
    import optuna

_STUDY, _JOURNAL = "tune", "study.journal"
_STARTUP_TRIALS = 4
"""Runs that are complete before others are compared with them."""


def open_study(root: Path, seed: int, epochs: int, prune: bool) -> optuna.Study:
    """The study of a folder: a new one, or the one that was begun there."""
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        raise ValueError(
            "`amago tune` needs Optuna, which is not installed: "
            "pip install -c constraints.txt 'amago[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    root.mkdir(parents=True, exist_ok=True)
    median = optuna.pruners.MedianPruner(_STARTUP_TRIALS, n_warmup_steps=epochs // 4)
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(root / _JOURNAL))),
        study_name=_STUDY,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=median if prune else optuna.pruners.NopPruner(),
        load_if_exists=True,
    )


@dataclass
class Tuner:
    """Feeds a queue with the runs of a study, and tells the study how they go."""

    study: optuna.Study
    preset: str
    seed: int
    changes: Sequence[str]
    space: Sequence[Dimension]
    num_trials: int
    root: Path
    _open: dict[Path, optuna.Trial] = field(default_factory=dict)
    _reported: dict[Path, int] = field(default_factory=dict)

    def take_up(self) -> list[Job]:
        """The runs that an earlier session began and did not finish."""
        import optuna

        running = self.study.get_trials(states=(optuna.trial.TrialState.RUNNING,))
        return [self._job(optuna.trial.Trial(self.study, trial._trial_id)) for trial in running]

    def feed(self, queue: Queue) -> bool:
        """Report, prune and tell; ask for new runs while places are free. Whether some may come."""
        for item in queue.progress:
            if item.job.run_dir in self._open:
                self._follow(queue, item)
        for job in list(queue.skipped):
            if job.run_dir in self._open:
                self._tell(job, "done")
        while len(self._open) < queue.num_parallel and self._begun() < self.num_trials:
            queue.add(self._job(self.study.ask()))
        return bool(self._open)

    def _begun(self) -> int:
        """Runs that were asked for so far; what is enqueued waits for its turn."""
        trials = self.study.get_trials(deepcopy=False)
        return sum(trial.state.name != "WAITING" for trial in trials)

    def _job(self, trial: optuna.Trial) -> Job:
        drawn = [f"{dimension.key}={dimension.draw(trial)}" for dimension in self.space]
        folder = self.root / f"trial-{trial.number:03d}" / f"seed-{self.seed}"
        self._open[folder] = trial
        return Job(self.preset, self.seed, parse_overrides([*self.changes, *drawn]), folder)

    def _follow(self, queue: Queue, item: Progress) -> None:
        if item.state == "running":
            self._report(item.job)
            if not item.pruned and self._open[item.job.run_dir].should_prune():
                queue.prune(item)
        elif item.state in ("done", "failed", "pruned"):
            self._report(item.job)
            self._tell(item.job, item.state)

    def _report(self, job: Job) -> None:
        """Tell the study the evaluations that are new."""
        last = self._reported.get(job.run_dir, 0)
        for epoch, value in _evaluations(job.run_dir / "metrics.jsonl"):
            if epoch > last:
                self._open[job.run_dir].report(value, epoch)
                self._reported[job.run_dir] = epoch

    def _tell(self, job: Job, state: str) -> None:
        import optuna

        trial = self._open.pop(job.run_dir)
        states = optuna.trial.TrialState
        if state == "done":
            result = json.loads((job.run_dir / "result.json").read_text())
            trial.set_user_attr("random", result.get("random_return_mean"))
            self.study.tell(trial, _objective(result))
        else:
            self.study.tell(trial, state=states.PRUNED if state == "pruned" else states.FAIL)


def _objective(result: dict[str, Any]) -> float:
    """What is maximised: the pooled return of a complete run."""
    return float(result.get("pooled", result)["return_mean"])


def _evaluations(path: Path) -> list[tuple[int, float]]:
    """(epoch, return) of all evaluations so far in a growing file."""
    found: list[tuple[int, float]] = []
    for line in path.read_bytes().splitlines(keepends=True) if path.is_file() else ():
        if line.endswith(b"\n"):
            row: dict[str, Any] = json.loads(line)
            if row.get("eval/return_mean") is not None:
                found.append((int(row["epoch"]), float(row["eval/return_mean"])))
    return found
