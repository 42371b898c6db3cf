"""A claim: a question, the arms that answer it, and the runs behind every number.

results/<claim>/claim.toml                     what is claimed, how it was run, its limits
results/<claim>/data/<arm>/seed-<n>/           config.json, evals.csv, result.json of one run
results/<claim>/README.md, picture.png         generated: python -m amago.reproduce results

Where the registry has an entry for the folder, the entry says what is claimed and how it was run;
claim.toml then holds words alone (answer, details, caveats, tables) and may be missing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from amago.baselines.catalogue import has_todays_settings
from amago.config import MACHINE_SETTINGS, differences, from_dict
from amago.report.runs import RunRecord, read_run
from amago.reproduce.entry import Experiment
from amago.reproduce.plan import resolve
from amago.reproduce.registry import by_folder
from amago.rollout.scores import COMPARED, Score

CLAIM_FILE = "claim.toml"
_WORDS = ("answer", "details", "caveats", "tables")
"""What may be added by hand to what an entry declares."""


@dataclass(frozen=True)
class Arm:
    """Runs that differ in their seed alone; arms of one task share a panel and its references."""

    name: str
    folder: str
    task: str
    runs: tuple[RunRecord, ...]
    settings: tuple[str, ...] = ()
    """What the arm changes of its preset, written as `--set` takes it: "memory=feedforward"."""
    preset: str = ""
    """The preset that is meant; unset: the one that the runs had."""

    @property
    def earlier_settings(self) -> bool:
        """Whether today's preset, changed as the arm says, has other settings than the runs."""
        return not all(made_today(run, self.settings, self.preset) for run in self.runs)


@dataclass(frozen=True)
class Claim:
    """What one folder of results says."""

    folder: Path
    question: str
    answer: str
    metric: Score
    measure: str
    """The metric as this domain understands it, such as "deliveries of 2.96"."""
    arms: tuple[Arm, ...]
    command: str
    caveats: tuple[str, ...]
    details: str = ""
    """Further paragraphs, as Markdown."""
    control: str = ""
    """Name of the arm that stands beside the first one in the index, usually "no memory"."""
    adaptation: bool = False
    """Whether the tenths of a rollout tell how the agent adapts."""
    tables: tuple[str, ...] = ()
    """Further tables: CSV files in the folder."""
    picture: str = "picture.png"
    order: int = 1000
    """Place in an index of claims."""
    paper: str = ""
    """The figure or table of the paper that it answers to."""
    view: str = "curves"
    """What draws the picture: a module of amago.reproduce.views."""
    holds: tuple[str, ...] = ()
    """What must hold in the data, as holds.py reads it."""

    @property
    def name(self) -> str:
        """The folder's name, a sentence with hyphens."""
        return self.folder.name

    @property
    def registered(self) -> bool:
        """Whether an entry of the registry declares it."""
        return by_folder(self.name) is not None

    @property
    def drawn(self) -> bool:
        """Whether the picture is made from the data."""
        return bool(self.arms) or self.registered

    @property
    def earlier_settings(self) -> bool:
        """Whether the presets have changed since some of the runs."""
        return any(arm.earlier_settings for arm in self.arms)

    @property
    def tasks(self) -> dict[str, list[Arm]]:
        """The arms of each task, in the order of claim.toml."""
        grouped: dict[str, list[Arm]] = {}
        for arm in self.arms:
            grouped.setdefault(arm.task, []).append(arm)
        return grouped


def read_claim(folder: str | Path) -> Claim:
    """The claim of a folder with all its runs."""
    path = Path(folder) / CLAIM_FILE
    declared = by_folder(path.parent.name)
    if not path.is_file() and declared is None:
        raise ValueError(
            f"expected a claim in {path}, found no such file; write one with question, answer, "
            "metric, measure, command, caveats and arms, as results/*/claim.toml do"
        )
    content = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if declared is None:
        _check_keys(path, content)
        arms = tuple(_read_arm(path.parent, entry) for entry in content.pop("arms", ()))
    else:
        _check_words(path, content)
        arms = _declared_arms(path.parent)
        content = _declared(path.parent.name, content)
    _check_folders(path.parent, arms)
    content |= {name: tuple(content[name]) for name in _TUPLES if name in content}
    content["metric"] = COMPARED[content["metric"]]
    content["command"] = content["command"].strip()
    return Claim(folder=path.parent, arms=arms, **content)


_TUPLES = ("caveats", "tables", "holds")


def _declared(folder: str, words: dict[str, Any]) -> dict[str, Any]:
    """What the registry says of a claim, and the words that were added by hand."""
    found = by_folder(folder)
    assert found is not None
    name, entry, scale = found
    flag = "" if scale == "cpu" else f" --scale {scale}"
    content: dict[str, Any] = {
        "question": entry.question,
        "answer": "",
        "measure": entry.measure,
        "metric": "return",
        "command": f"amago reproduce {name}{flag}",
        "paper": entry.paper,
        "view": entry.view,
    }
    if isinstance(entry, Experiment):
        names = ("metric", "control", "adaptation", "holds")
        content |= {name: getattr(entry, name) for name in names}
    content |= {key: value for key, value in words.items() if key != "caveats"}
    content["caveats"] = (*entry.caveats, *words.get("caveats", ()))
    return content


def _declared_arms(folder: Path) -> tuple[Arm, ...]:
    """The arms of an entry that have been run."""
    found = by_folder(folder.name)
    assert found is not None
    _, entry, scale = found
    arms: list[Arm] = []
    if not isinstance(entry, Experiment):
        return ()
    for arm in entry.arms:
        if runs := _read_runs(folder, arm.folder):
            settings, preset = entry.settings_of(arm, scale), entry.preset_of(arm, scale)
            arms.append(Arm(arm.name, arm.folder, arm.task, runs, settings, preset))
    return tuple(arms)


def find_claims(root: str | Path) -> list[Claim]:
    """Every claim below a results folder, in the order of the index."""
    found = {path.parent for path in Path(root).glob(f"*/{CLAIM_FILE}")}
    found |= {path.parent for path in Path(root).glob("*/data") if by_folder(path.parent.name)}
    if not found:
        raise ValueError(f"expected claims {Path(root)}/*/{CLAIM_FILE}, found none")
    claims = [read_claim(folder) for folder in found]
    return sorted(claims, key=lambda claim: (claim.order, claim.name))


def repeatable(run: RunRecord) -> bool:
    """Whether a commit says exactly which code made the run."""
    return run.git_commit is not None and not run.git_commit.endswith("-dirty")


def made_today(run: RunRecord, settings: Sequence[str] = (), preset: str = "") -> bool:
    """Whether today's preset, with some settings changed, is what a run recorded.

    Not so where the preset or a setting has another name today. Settings that only say where a
    run happens do not count; of a baseline its environment does, and the settings of its own.
    """
    try:
        today, recorded = resolve(preset or run.preset, settings), from_dict(run.config)
    except ValueError:
        return False
    differing = differences(today, recorded).keys() - set(MACHINE_SETTINGS)
    if any(text.startswith("baseline=") for text in settings):
        if not has_todays_settings(run.method, run.method_settings):
            return False
        differing = {name for name in differing if name in ("env.id", "env.ids", "env.kwargs")}
    return not differing


def _read_arm(folder: Path, entry: Mapping[str, Any]) -> Arm:
    runs = _read_runs(folder, entry["folder"])
    if not runs:
        raise ValueError(f"expected runs in {folder / 'data' / entry['folder']}/seed-N, found none")
    settings = tuple(entry.get("set", ()))
    return Arm(entry["name"], entry["folder"], entry.get("task", ""), runs, settings)


def _read_runs(folder: Path, arm: str) -> tuple[RunRecord, ...]:
    runs = [read_run(path.parent) for path in (folder / "data").glob(_configs(arm))]
    return tuple(sorted(runs, key=lambda run: run.seed))


def _configs(arm: str) -> str:
    return f"{arm}/seed-*/config.json"


def _check_keys(path: Path, content: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(Claim)} - {"folder"}
    required = {"question", "answer", "metric", "measure", "command", "caveats"}
    unknown, missing = sorted(set(content) - known), sorted(required - set(content))
    if unknown or missing:
        raise ValueError(
            f"{path}: unknown keys: {', '.join(unknown) or 'none'}; "
            f"missing keys: {', '.join(missing) or 'none'}"
        )
    if content["metric"] not in COMPARED:
        raise ValueError(f"{path}: metric is one of {list(COMPARED)}, got {content['metric']!r}")


def _check_words(path: Path, content: Mapping[str, Any]) -> None:
    unknown = sorted(set(content) - set(_WORDS))
    if unknown:
        raise ValueError(
            f"{path}: the registry declares this claim, so that the file takes {', '.join(_WORDS)} "
            f"alone, got {', '.join(unknown)}; change the entry in amago/reproduce/figures instead"
        )


def _check_folders(folder: Path, arms: tuple[Arm, ...]) -> None:
    """No run is left out: every folder of data belongs to an arm."""
    present = {path.parts[-3] for path in (folder / "data").glob(_configs("*"))}
    forgotten = sorted(present - {arm.folder for arm in arms})
    if forgotten:
        raise ValueError(f"{folder / CLAIM_FILE} names no arm for the runs in data/{forgotten}")
