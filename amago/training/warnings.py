"""Warnings while a run goes on: the doctor's findings, each said once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from amago.config import Config
from amago.doctor.history import mean_age
from amago.doctor.rules import diagnose
from amago.saved.files import read_rows

_LOG = logging.getLogger("amago")


class Warnings:
    """Looks at every epoch's metrics together with those before it."""

    def __init__(self, folder: Path, config: Config) -> None:
        """A resumed run goes on with the rows that it has, and does not repeat itself."""
        self._rows = read_rows(folder / "metrics.jsonl")
        self._config = config
        self._said = {finding.name for finding in diagnose(self._rows, config)}

    @property
    def random_play(self) -> dict[str, Any]:
        """What random play earns, once an evaluation was compared with it."""
        key = "random/return_mean"
        return next(({key: row[key]} for row in self._rows if key in row), {})

    def add(self, metrics: dict[str, Any]) -> None:
        """Take the metrics of one more epoch, add the replay's age, warn of what is new."""
        self._rows.append(metrics)
        if (age := mean_age(self._rows)) is not None:
            metrics["replay/age"] = age
        for finding in diagnose(self._rows, self._config):
            if finding.name not in self._said:
                self._said.add(finding.name)
                _LOG.warning(f"epoch {finding.epoch}: {finding}")
