"""The jobs of a sweep: which runs there are, where they live, how each is started."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amago.presets.arms import arm_names

_MOST_CHARACTERS = 180
Step = Literal["skip", "resume", "start"]
OWN = "amago"
"""What --set method=NAME calls amago's own agent, beside `amago baseline --list`."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep."""

    preset: str
    seed: int
    overrides: dict[str, str]
    run_dir: Path

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"expected seeds of 0 or more, got {self.seed}; correct --seeds")

    @property
    def log(self) -> Path:
        """What the run prints, beside its folder: a restart may remove the folder."""
        return self.run_dir.with_name(self.run_dir.name + ".log")


Command = Callable[[Job, Step], list[str]]


def short_names(jobs: Iterable[Job]) -> dict[Path, str]:
    """What to call each run folder: only what differs among the arms, and the seed."""
    folders = [job.run_dir for job in jobs]
    arms = arm_names(dict.fromkeys(folder.parent.name for folder in folders))
    return {folder: f"{arms[folder.parent.name]}/{folder.name}" for folder in folders}


def parse_overrides(assignments: Sequence[str]) -> dict[str, str]:
    """Settings given as key=value, such as memory=gru or optim.learning_rate=1e-3."""
    overrides: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not (key and equals and value):
            raise ValueError(
                f"--set expects key=value, got {assignment!r}; for example --set memory=gru"
            )
        key = key.lstrip("-").replace("-", "_")
        if key in overrides:
            raise ValueError(
                f"--set got {key} twice, {overrides[key]!r} and {value!r}; "
                "start one sweep per value, they may share a root folder"
            )
        overrides[key] = value
    return overrides


def with_ablations(assignments: Sequence[str], ablations: Sequence[str]) -> list[str]:
    """Settings of a sweep and the ablations that all of its runs share, as one list."""
    return [*assignments, *([f"ablate={' '.join(ablations)}"] if ablations else [])]


def plan(
    presets: Sequence[str], seeds: Sequence[int], overrides: Sequence[str], root: str | Path
) -> list[Job]:
    """All runs of a sweep, seed by seed, so that every preset has a first result early."""
    if not presets or not seeds:
        raise ValueError(
            f"a sweep needs at least one preset and one seed, got {list(presets)} and "
            f"{list(seeds)}; for example `amago sweep t-maze --seeds 0 1 2`"
        )
    settings = parse_overrides(overrides)
    suffix = "".join(f"__{key}={_folder_name(value)}" for key, value in sorted(settings.items()))
    folders = {name: Path(root) / _shortened(_folder_name(name) + suffix) for name in presets}
    return [
        Job(preset, seed, settings, folder / f"seed-{seed}")
        for seed in dict.fromkeys(seeds)
        for preset, folder in folders.items()
    ]


def next_step(job: Job) -> Step:
    """What is left to do for a run, told from its folder alone."""
    from amago.saved.header import lacks_control  # late: listings need no environments

    if (job.run_dir / "result.json").is_file() and not lacks_control(job.run_dir):
        return "skip"
    return "resume" if (job.run_dir / "config.json").is_file() else "start"


def prepare(job: Job) -> None:
    """Make the folder in which the run's own folder and log come to be."""
    job.run_dir.parent.mkdir(parents=True, exist_ok=True)


def amago_command(job: Job, step: Step) -> list[str]:
    """The command line of a run."""
    amago = [sys.executable, "-m", "amago"]
    method, overrides = method_of(job.overrides)
    if step == "resume" and method == OWN:
        named = any(":" in job.overrides.get(key, "") for key in ("env.id", "env.ids"))
        project = job.overrides.get("run.wandb_project")  # named again: a folder's own is ignored
        set_again = ["--set", f"run.wandb_project={project}"] if project else []
        return [*amago, "resume", str(job.run_dir), *(["--trust"] if named else []), *set_again]
    verb = ["train"] if method == OWN else ["baseline", method]
    command = [*amago, *verb, job.preset, "--seed", str(job.seed)]
    command += ["--run-dir", str(job.run_dir), "--threads", "1"]
    again = ["--exist", "overwrite"] if step == "resume" else []  # a baseline begins again
    return [*command, *again, *flags(overrides)]


def method_of(overrides: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Which method a run trains, amago's own or a baseline, and its settings."""
    settings = dict(overrides)
    return settings.pop("method", OWN), settings


def flags(overrides: Mapping[str, str]) -> list[str]:
    """Overrides as arguments of `amago train`: tuples item by item, truths with capitals."""
    arguments: list[str] = []
    for key, value in overrides.items():
        items = [i.capitalize() if i in ("true", "false") else i for i in value.split()]
        arguments += ["--" + key.replace("_", "-"), *items]
    return arguments


def _folder_name(text: str) -> str:
    return "-".join(text.replace("/", " ").split())


def _shortened(name: str) -> str:
    """File systems end a name at 255 bytes: a digest keeps what is cut off distinct."""
    if len(name) <= _MOST_CHARACTERS:
        return name
    return f"{name[: _MOST_CHARACTERS - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
