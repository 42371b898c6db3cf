"""Whether a run without checkpoints has lost them, or never had one."""

from __future__ import annotations

from pathlib import Path

from amago.config import Config
from amago.replay.reader import TrajectoryReader
from amago.saved.files import count_rows


def lost_checkpoints(folder: Path, config: Config) -> str | None:
    """What shows that a run without checkpoints once had some; None if it may never have had one.

    Rows of metrics come before the checkpoint of their epoch, so a run that was killed in its
    first epochs has some of them, too; it has no trajectories before its file of metrics is there.
    """
    files = [folder / "metrics.jsonl", folder / "timing.jsonl"]
    epochs = max(map(count_rows, files))
    first = min(config.run.save_interval, config.run.epochs)
    if epochs > first or (folder / "result.json").exists():
        return f"{folder} has trained {epochs} epochs, but its checkpoints are gone"
    if not files[0].is_file() and (stored := _num_collected(folder / "replay")):
        return f"{folder} has {stored} trajectories, but its checkpoints and metrics are gone"
    return None


def _num_collected(replay: Path) -> int:
    try:
        with TrajectoryReader(replay) as store:
            low, high = store.window
            return high - low
    except ValueError:  # killed before the store was made; what is damaged is said by its writer
        return 0
