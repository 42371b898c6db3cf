"""`amago doctor`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class DoctorOptions:
    """Find what goes wrong in training and which flag to look at; exit code 1 if any."""

    run: tyro.conf.Positional[Path]
    """The run folder; the run may still go on."""
    json: bool = False
    """Print a JSON list of findings instead of sentences."""


def doctor(arguments: Sequence[str]) -> int:
    options = parse(DoctorOptions, arguments, "amago doctor")
    from rich.console import Console
    from rich.markup import escape

    from amago.config import from_dict
    from amago.doctor.rules import RULES, diagnose
    from amago.report.runs import read_run

    run = read_run(options.run)
    findings = diagnose(run.metrics, from_dict(run.config), run.result)
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings]))
        return int(bool(findings))
    console = Console()
    for finding in findings:
        console.print(f"[bold]{finding.name}[/]: {escape(str(finding))}", highlight=False)
    epochs = len(run.metrics)
    if not epochs:
        console.print(f"{options.run} has not finished an epoch yet", highlight=False)
    elif findings:
        console.print("docs/diagnosis.md says what each means and what to try", highlight=False)
    else:
        console.print(f"nothing found in {epochs} epochs by {len(RULES)} rules", highlight=False)
    return int(bool(findings))
