"""How long runs took, and how long others will take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amago.config import Config
from amago.report.runs import RunRecord, read_run

PACE = "pace.json"
"""What a claim keeps of a run's times."""
_TRIALS = Path(__file__).parent / "paces.json"
"""Trial runs of some epochs, for presets of which no claim has a run yet."""


@dataclass(frozen=True)
class Pace:
    """What a run took per update and per step of an environment."""

    seconds_per_update: float
    seconds_per_step: float
    steps_per_lane: float
    """Steps of one lane in one epoch."""
    length: int | None = None
    """Of its rollouts, where its settings say it."""

    def seconds(self, config: Config) -> float:
        """What a run with these settings will take: longer rollouts take longer, and so do
        updates from them, unless a batch has a fixed number of rows."""
        length = _length(config.env.kwargs)
        longer = length / self.length if length and self.length else 1.0
        steps = config.env.num_lanes * self.steps_per_lane * longer
        update = self.seconds_per_update * (1.0 if config.replay.batch_rows else longer)
        an_epoch = config.run.updates_per_epoch * update + steps * self.seconds_per_step
        limit = config.run.max_minutes
        total = config.run.epochs * an_epoch
        return total if limit is None else min(total, 60 * limit)


def recorded_pace(run: RunRecord) -> Pace | None:
    """The pace of a run: from its timing, its pace.json, or from its whole duration alone."""
    kept = run.path / PACE
    if kept.is_file():
        return Pace(**json.loads(kept.read_text(encoding="utf-8")))
    last = run.metrics[-1] if run.metrics else {}
    updates, steps, epochs = (int(last.get(key, 0)) for key in ("updates", "env_steps", "epoch"))
    if not updates or not epochs or run.seconds is None:
        return None
    env = run.config.get("env") or {}
    lanes, length = int(env.get("num_lanes") or 1), _length(env.get("kwargs") or {})
    learn, evaluate, collect = (_spent(run, part) for part in ("learn", "eval", "collect"))
    if not learn:
        return Pace(run.seconds / updates, 0.0, steps / epochs / lanes, length)
    # Evaluations are a share of playing; they are counted with the updates.
    share = collect / max(steps, 1)
    return Pace((learn + evaluate) / updates, share, steps / epochs / lanes, length)


def _spent(run: RunRecord, part: str) -> float:
    """Seconds of a processor, or of the clock where those were not recorded."""
    spent = 0.0
    for row in run.timing:
        spent += float(row.get(f"{part}_cpu_seconds") or row.get(f"{part}_seconds") or 0.0)
    return spent


def _length(arguments: Mapping[str, Any]) -> int | None:
    """How long rollouts are, as far as the arguments of an environment say it."""
    found = arguments.get("horizon", arguments.get("corridor"))
    return found if isinstance(found, int) else None


def paces(roots: Iterable[Path]) -> dict[str, Pace]:
    """The pace of every preset: of the newest run that some folders have, or else of a trial."""
    trials: dict[str, dict[str, Any]] = json.loads(_TRIALS.read_text(encoding="utf-8"))
    found = {preset: Pace(**values) for preset, values in trials.items()}
    newest: dict[str, str] = {}
    for path in (path for root in roots for path in root.glob("**/seed-*/config.json")):
        run = read_run(path.parent)
        created = str(json.loads(path.read_text(encoding="utf-8")).get("created", ""))
        if run.method != "amago" or created < newest.get(run.preset, ""):
            continue
        if (pace := recorded_pace(run)) is not None:
            found[run.preset], newest[run.preset] = pace, created
    return found
