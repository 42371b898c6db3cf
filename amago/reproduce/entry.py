"""What an entry of the registry declares: a figure or table of the paper, and how it is made.

`figures/` has one file per entry. A file defines ENTRY; its name, with hyphens, is what
`amago reproduce` calls the entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Scale = Literal["cpu", "paper"]
PAPER_SCALE = "-at-paper-scale"
"""Ends the folder of a claim whose runs have the paper's sizes."""


@dataclass(frozen=True)
class Variant:
    """An arm: a preset with changes, under a name for people."""

    name: str
    ablate: str = ""
    """Ablations by name, separated by blanks."""
    set: tuple[str, ...] = ()
    """Settings as key=value."""
    task: str = ""
    """Arms of one task share a panel and its references."""
    preset: str = ""
    """Where it differs from the experiment's."""
    baseline: str = ""
    """Another method: `amago baseline NAME` trains instead of `amago train`."""
    on_cpu: tuple[str, ...] = ()
    """Further settings at CPU scale alone, such as a budget of its own."""

    @property
    def folder(self) -> str:
        """Where the arm's runs are in data/."""
        words = re.findall(r"[a-z0-9]+", f"{self.task} {self.name}".lower())
        return "-".join(words)


@dataclass(frozen=True)
class Probe:
    """An evaluation after training, whose scores are kept beside the run."""

    name: str
    set: tuple[str, ...] = ()
    """Changes of the environment, as key=value: env.kwargs.split=test."""
    instructions: tuple[str, ...] = ()
    """What is asked for, one after the other, then what the environment draws by itself."""
    which: str = "latest"
    """The checkpoint: latest, best, or "kept" for each that `run.keep_interval` kept."""
    episodes: int = 200
    """Rollouts per instruction and checkpoint."""
    measure: str = "success"
    """What is counted, by its name in measures.py; instructions are counted by success."""
    greedy: bool | None = None
    """Take the most likely actions; unset: as in the run's evaluations."""
    lanes: int | None = None
    """Environments at a time; unset: as in the run's evaluations."""


@dataclass(frozen=True)
class Experiment:
    """A claim with training runs behind it."""

    paper: str
    """The figure or table that it answers to; empty: none."""
    claim: str
    """Its folder in results/, a sentence with hyphens."""
    question: str
    measure: str
    """The metric as this domain understands it, such as "deliveries of 2.96"."""
    preset: str
    arms: tuple[Variant, ...]
    """The first one is the claim's own, the others stand beside it."""
    metric: Literal["return", "success"] = "return"
    seeds: tuple[int, ...] = (0, 1, 2)
    epochs: int | None = None
    """Budget of a run on a CPU; unset: the preset's."""
    minutes: float | None = None
    """Budget of a run on a CPU in minutes of training, beside `epochs`."""
    set: tuple[str, ...] = ()
    """Settings of all arms at every scale, as key=value."""
    on_cpu: tuple[str, ...] = ()
    """Further settings of all arms at CPU scale alone."""
    probes: tuple[Probe, ...] = ()
    view: str = "curves"
    """The picture, and a table beside it: a module of views/."""
    holds: tuple[str, ...] = ()
    """What must hold: "full > no memory, intervals apart". See claims/holds.py."""
    control: str = ""
    """Name of the arm that stands beside the first one in the index."""
    adaptation: bool = False
    """Whether the tenths of a rollout tell how the agent adapts."""
    caveats: tuple[str, ...] = ()
    """What it does not show."""

    def preset_of(self, arm: Variant, scale: Scale) -> str:
        name = arm.preset or self.preset
        return name if scale == "cpu" or name.endswith("/paper") else f"{name}/paper"

    def settings_of(self, arm: Variant, scale: Scale) -> tuple[str, ...]:
        """All that an arm changes of its preset, as `--set` takes it; the last one counts."""
        budget = [] if self.epochs is None else [f"run.epochs={self.epochs}"]
        budget += [] if self.minutes is None else [f"run.max_minutes={self.minutes:g}"]
        shared = (*self.set, *((*budget, *self.on_cpu) if scale == "cpu" else ()))
        own = (*arm.set, *(arm.on_cpu if scale == "cpu" else ()))
        changes = dict(text.partition("=")[::2] for text in (*shared, *own))
        changes |= {"ablate": arm.ablate} if arm.ablate else {}
        changes |= {"baseline": arm.baseline} if arm.baseline else {}
        return tuple(f"{key}={value}" for key, value in changes.items())

    def folder(self, scale: Scale) -> str:
        """The claim's folder in results/."""
        return self.claim + (PAPER_SCALE if scale == "paper" else "")


@dataclass(frozen=True)
class Measurement:
    """A claim without training: a module that measures or computes its data."""

    paper: str
    claim: str
    question: str
    measure: str
    module: str
    """Run as `python -m MODULE FOLDER`, it writes files into the claim's data/."""
    view: str
    minutes: float
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class Leaderboard:
    """The board, from the runs of `amago board`."""

    paper: str
    runs: str
    """Folder of those runs."""


@dataclass(frozen=True)
class Named:
    """A diagram, or a figure that another command shows: listed by name, never run."""

    paper: str
    shows: str
    where: str
    """A page, a file or a command of this project."""


Entry = Experiment | Measurement | Leaderboard | Named
