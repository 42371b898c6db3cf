"""`amago report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class ReportOptions:
    """Write report.html of a run: curves, a film, attention, adaptation, settings."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    which: str = "latest"
    """Checkpoint that is played: latest, best, or an epoch."""
    trust: bool = False
    """Import the module of the run's environment: the run is yours."""


def report(arguments: Sequence[str]) -> int:
    options = parse(ReportOptions, arguments, "amago report")
    from amago import api
    from amago.process import prepare_process

    prepare_process(1)
    path = api.report(options.run, which=options.which, trust=options.trust)
    print(f"report: {path}")
    return 0
