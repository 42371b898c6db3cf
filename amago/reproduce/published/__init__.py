"""Numbers of others, with their sources in the first lines of each file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

AUTHORS_STEPS = 8_000_000
"""Environment steps behind every number of `authors_scores`."""
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Published:
    """A number of others, with its 95% interval where that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@cache
def popgym_scores() -> Mapping[str, dict[str, float]]:
    """POPGym's own PPO baselines by id in small letters: `gru` and `best` of 13 memories."""
    rows = _rows("popgym_published.csv")
    return {r["id"].lower(): {"gru": float(r["gru"]), "best": float(r["best"])} for r in rows}


@cache
def popgym_data_scores() -> Mapping[str, float]:
    """A weaker source for other ids: the PPO-GRU policies behind a public offline data set."""
    return {row["id"].lower(): float(row["ppo_gru"]) for row in _rows("popgym_ppo_gru_data.csv")}


@cache
def crafter_scores() -> Mapping[str, Mapping[str, float]]:
    """The paper's Tables 1 and 2: success by arm and instruction."""
    rows = _rows("crafter.csv")
    arms = [name for name in rows[0] if name != "goal"]
    return {arm: {row["goal"]: float(row[arm]) / 100 for row in rows if row[arm]} for arm in arms}


@cache
def authors_scores() -> Mapping[str, Mapping[str, Published]]:
    """The authors' code as others have trained it: by probe and arm."""
    found: dict[str, dict[str, Published]] = {}
    for row in _rows("authors_code.csv"):
        low, high = (float(row[key]) if row[key] else None for key in ("low", "high"))
        found.setdefault(row["probe"], {})[row["arm"]] = Published(float(row["value"]), low, high)
    return found


def _rows(name: str) -> list[dict[str, str]]:
    with (_HERE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
