"""The exploration schedule of the paper's settings: python -m amago.reproduce.schedule FOLDER.

Writes schedule.csv: ε, before a rollout's random multiplier, over the steps of a rollout, at
several moments of training (paper Figure 13).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from amago.presets.base import PAPER
from amago.rollout.exploration import annealed

_FILE = "schedule.csv"
_HORIZON = 500
_MOMENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_POINTS = 26


def _rows() -> list[tuple[float, float, float]]:
    """Share of the annealing that has passed, share of the rollout, ε."""
    time = np.linspace(0, _HORIZON, _POINTS)
    return [
        (moment, float(at) / _HORIZON, round(float(noise), 6))
        for moment in _MOMENTS
        for at, noise in zip(time, annealed(PAPER.exploration, moment, time, _HORIZON), strict=True)
    ]


def main(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / _FILE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("annealed", "rollout", "epsilon"))
        writer.writerows(_rows())


if __name__ == "__main__":
    main(*sys.argv[1:])
