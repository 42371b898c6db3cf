"""The runs of an experiment as jobs of the sweep's queue."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amago.config import Config, literal, override
from amago.envs.catalogue import PRESETS, preset
from amago.presets.ablations import ablate
from amago.reproduce.entry import Experiment, Probe, Scale, Variant
from amago.sweep.jobs import Job, Step, amago_command, flags, parse_overrides, plan

RESULT = "result.json"
_NOT_SETTINGS = ("size", "ablate", "baseline")


@dataclass(frozen=True)
class Planned:
    """One run of an experiment: its arm, and the job that makes it."""

    arm: Variant
    job: Job

    def probe(self, probe: Probe) -> Job:
        """The job of an evaluation after the run; its own result.json says that it was made."""
        run = self.job.run_dir
        return dataclasses.replace(self.job, run_dir=run.with_name(f"{run.name}--{probe.name}"))


def planned(
    experiment: Experiment,
    scale: Scale,
    seeds: Sequence[int],
    root: Path,
    changes: Sequence[str] = (),
) -> list[Planned]:
    """All runs, seed by seed. Runs with the same settings are shared by all experiments.

    `changes` are made in all arms, after the arms' own.
    """
    found = []
    for seed in dict.fromkeys(seeds):
        for arm in experiment.arms:
            name = experiment.preset_of(arm, scale)
            settings = _changed(experiment.settings_of(arm, scale), changes)
            found += [Planned(arm, job) for job in plan([name], [seed], settings, root)]
    return found


def _changed(settings: Sequence[str], changes: Sequence[str]) -> list[str]:
    """Settings as key=value, some of them replaced."""
    merged = parse_overrides(settings) | parse_overrides(changes)
    return [f"{key}={value}" for key, value in merged.items()]


def resolve(name: str, settings: Sequence[str]) -> Config:
    """The settings of a run: those of a preset, changed as `--set` says."""
    given = parse_overrides(settings)
    config = preset(name, given.get("size"))
    config = ablate(config, given.get("ablate", "").split())
    return override(config, {
        key: _value(text) for key, text in given.items() if key not in _NOT_SETTINGS
    })  # fmt: skip


def missing_presets(experiment: Experiment, scale: Scale) -> list[str]:
    """Presets that a scale would need and nobody has written."""
    names = (experiment.preset_of(arm, scale) for arm in experiment.arms)
    return sorted({name for name in names if name not in PRESETS})


def command(job: Job, step: Step) -> list[str]:
    """The command line of a run; a baseline has a verb of its own."""
    method = job.overrides.get("baseline")
    if method is None:
        return amago_command(job, step)
    rest = {key: value for key, value in job.overrides.items() if key != "baseline"}
    verb = [sys.executable, "-m", "amago", "baseline", method, job.preset]
    verb += ["--seed", str(job.seed), "--run-dir", str(job.run_dir), "--threads", "1"]
    # Baselines cannot be resumed: what was broken off begins again.
    return [*verb, *(["--exist", "overwrite"] if step == "resume" else []), *flags(rest)]


def probe_command(run: Path, probe: Probe, out: Path) -> list[str]:
    """The command line of an evaluation after training."""
    text = json.dumps(dataclasses.asdict(probe))
    return [sys.executable, "-m", "amago.reproduce.probe", str(run), text, str(out)]


def _value(text: str) -> object:
    """As the command line reads it: several words are a tuple."""
    words = text.split()
    return literal(text) if len(words) == 1 else tuple(literal(word) for word in words)
