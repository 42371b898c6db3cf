"""A claim: a question, the arms that answer it, and the runs behind every number.

results/<claim>/claim.toml                     what is claimed, how it was run, its limits
results/<claim>/data/<arm>/seed-<n>/           config.json, evals.csv, result.json of one run
results/<claim>/README.md, picture.png         generated: python -m amago.reproduce.claims results
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from amago.config import MACHINE_SETTINGS, differences, from_dict, literal, override
from amago.envs.catalogue import preset
from amago.report.metrics import METRICS, Metric
from amago.report.runs import RunRecord, read_run

CLAIM_FILE = "claim.toml"


@dataclass(frozen=True)
class Arm:
    """Runs that differ in their seed alone; arms of one task share a panel and its references."""

    name: str
    folder: str
    task: str
    runs: tuple[RunRecord, ...]
    settings: tuple[str, ...] = ()
    """What the arm changes of its preset, written as `--set` takes it: "memory=feedforward"."""

    @property
    def earlier_settings(self) -> bool:
        """Whether today's preset, changed as the arm says, has other settings than the runs."""
        return not all(_made_today(run, self.settings) for run in self.runs)


@dataclass(frozen=True)
class Claim:
    """What one folder of results says."""

    folder: Path
    question: str
    answer: str
    metric: Metric
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

    @property
    def name(self) -> str:
        """The folder's name, a sentence with hyphens."""
        return self.folder.name

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
    if not path.is_file():
        raise ValueError(
            f"expected a claim in {path}, found no such file; write one with question, answer, "
            "metric, measure, command, caveats and arms, as results/*/claim.toml do"
        )
    with path.open("rb") as file:
        content = tomllib.load(file)
    _check_keys(path, content)
    arms = tuple(_read_arm(path.parent, entry) for entry in content.pop("arms", ()))
    _check_folders(path.parent, arms)
    content |= {name: tuple(content[name]) for name in ("caveats", "tables") if name in content}
    content["metric"] = METRICS[content["metric"]]
    content["command"] = content["command"].strip()
    return Claim(folder=path.parent, arms=arms, **content)


def find_claims(root: str | Path) -> list[Claim]:
    """Every claim below a results folder, in the order of the index."""
    found = sorted(Path(root).glob(f"*/{CLAIM_FILE}"))
    if not found:
        raise ValueError(f"expected claims {Path(root)}/*/{CLAIM_FILE}, found none")
    claims = [read_claim(path.parent) for path in found]
    return sorted(claims, key=lambda claim: (claim.order, claim.name))


def repeatable(run: RunRecord) -> bool:
    """Whether a commit says exactly which code made the run."""
    return run.git_commit is not None and not run.git_commit.endswith("-dirty")


def _made_today(run: RunRecord, settings: Sequence[str] = ()) -> bool:
    """Whether today's preset, with some settings changed, is what a run recorded.

    Not so where the preset or a setting has another name today. Settings that only say where a
    run happens do not count.
    """
    assignments = (text.partition("=") for text in settings)
    changes = {name: literal(value) for name, _, value in assignments}
    try:
        today, recorded = override(preset(run.preset), changes), from_dict(run.config)
    except ValueError:
        return False
    return not differences(today, recorded).keys() - set(MACHINE_SETTINGS)


def _read_arm(folder: Path, entry: Mapping[str, Any]) -> Arm:
    runs = [read_run(path.parent) for path in (folder / "data").glob(_configs(entry["folder"]))]
    if not runs:
        raise ValueError(f"expected runs in {folder / 'data' / entry['folder']}/seed-N, found none")
    ordered = tuple(sorted(runs, key=lambda run: run.seed))
    settings = tuple(entry.get("set", ()))
    return Arm(entry["name"], entry["folder"], entry.get("task", ""), ordered, settings)


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
    if content["metric"] not in METRICS:
        raise ValueError(f"{path}: metric is one of {list(METRICS)}, got {content['metric']!r}")


def _check_folders(folder: Path, arms: tuple[Arm, ...]) -> None:
    """No run is left out: every folder of data belongs to an arm."""
    present = {path.parts[-3] for path in (folder / "data").glob(_configs("*"))}
    forgotten = sorted(present - {arm.folder for arm in arms})
    if forgotten:
        raise ValueError(f"{folder / CLAIM_FILE} names no arm for the runs in data/{forgotten}")
