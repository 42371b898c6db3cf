"""`amago verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.checks import printable
from amago.cli.parsing import parse


@dataclass(frozen=True)
class VerifyOptions:
    """Read every file of a run and say whether it is sound; exit code 1 if not."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    trust: bool = False
    """Import the module of the run's environment: the run is yours."""


def verify(arguments: Sequence[str]) -> int:
    options = parse(VerifyOptions, arguments, "amago verify")
    from amago.check.verify import verify as look

    findings = look(options.run, trust=options.trust)
    for finding in findings:
        print(printable(str(finding)))
    problems = sum(not finding.sound for finding in findings)
    print(f"{options.run}: {f'{problems} problems' if problems else 'sound'}")
    return int(bool(problems))
