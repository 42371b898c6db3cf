"""From the runs of a sweep to a claim: the small evidence that belongs into git."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from amago.config import from_dict
from amago.envs.catalogue import changed_settings, find_preset
from amago.report.runs import EVALUATIONS, RunRecord, find_runs, label
from amago.report.sweeps import thin, write_csv
from amago.reproduce.claims.claim import CLAIM_FILE, read_claim
from amago.reproduce.claims.pages import write_claim
from amago.reproduce.pace import PACE, recorded_pace

_EVALUATION_COLUMNS = (
    "epoch", "env_steps", "updates", "minutes", "eval/return_mean", "eval/return_std",
    "eval/success_rate", "eval/episodes", "eval/return_per_block",
    "loss/critic", "policy/entropy", "grad/norm",
)  # fmt: skip
_DRAFT = "Not written yet."


def export(root: str | Path, claim: str | Path, command: str | None = None) -> Path:
    """Copy the runs of a sweep, without checkpoints and replay, into the folder of a claim.

    A new claim gets a claim.toml to be completed by hand; an old one gets the arms that it lacks.
    """
    source, target = Path(root), Path(claim)
    groups = find_runs(source)
    recorded = source / "command.txt"
    if command is None and not recorded.is_file():
        raise ValueError(
            f"expected the command of this sweep in {recorded}, found no such file; "
            "pass it as `command`, so that others can repeat the runs"
        )
    text = recorded.read_text(encoding="utf-8") if command is None else command
    target.mkdir(parents=True, exist_ok=True)
    for group, runs in groups.items():
        for run in runs:
            copy_run(run, target / "data" / group / run.path.name)
    _write_claim_file(target, groups, text)
    write_claim(read_claim(target))
    return target


def copy_run(run: RunRecord, target: Path, needs: tuple[str, ...] = ()) -> None:
    """The evidence of one run; `needs` are beginnings of further metrics to keep."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run.path / "config.json", target / "config.json")
    if run.result is not None:
        shutil.copyfile(run.path / "result.json", target / "result.json")
    logged = dict.fromkeys(key for row in run.evaluations for key in row)
    further = [key for key in logged if key.startswith(needs) and key not in _EVALUATION_COLUMNS]
    columns = (*_EVALUATION_COLUMNS, *(further if needs else ()))
    timed = [{"minutes": run.minutes(row["epoch"]), **row} for row in run.evaluations]
    write_csv(target / EVALUATIONS, columns, thin(timed))
    if (pace := recorded_pace(run)) is not None:
        (target / PACE).write_text(json.dumps(dataclasses.asdict(pace)) + "\n", encoding="utf-8")


def _write_claim_file(
    target: Path, groups: Mapping[str, Sequence[RunRecord]], command: str
) -> None:
    path = target / CLAIM_FILE
    written = path.read_text(encoding="utf-8") if path.is_file() else _draft(groups, command)
    several = len({runs[0].preset for runs in groups.values()}) > 1
    for group, runs in groups.items():
        if f"folder = {json.dumps(group)}" not in written:
            task = f"task = {json.dumps(runs[0].preset)}\n" if several else ""
            written += f"\n[[arms]]\nname = {json.dumps(label(group))}\n{task}"
            written += f"folder = {json.dumps(group)}\n{_settings(runs[0])}"
    path.write_text(written, encoding="utf-8")


def _settings(run: RunRecord) -> str:
    """A comment that lists what an arm changes of its preset.

    Only the author knows whether that was on purpose, so that it stays a comment: until somebody
    makes it a setting, the arm counts as one of earlier settings.
    """
    try:
        find_preset(run.preset)
        changes = changed_settings(from_dict(run.config), run.preset)
    except ValueError:
        return ""
    assignments = [f"{key}={value}" for key, (value, _) in changes.items()]
    return f"# set = {json.dumps(assignments)}  # if on purpose\n" if assignments else ""


def _draft(groups: Mapping[str, Sequence[RunRecord]], command: str) -> str:
    rates = [
        row.get("eval/success_rate") for runs in groups.values() for row in runs[0].evaluations
    ]
    metric = "return" if not rates or None in rates else "success"
    return "\n".join(
        (
            f"question = {json.dumps(_DRAFT)}",
            f"answer = {json.dumps(_DRAFT)}",
            f'metric = "{metric}"',
            f'measure = "{metric}"',
            f"command = '''\n{command.strip()}\n'''",
            f"caveats = [{json.dumps(_DRAFT)}]\n",
        )
    )
