"""`amago relabel`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from amago.cli.parsing import parse

if TYPE_CHECKING:
    from amago.goals import GoalSpec
    from amago.replay.reader import TrajectoryReader


@dataclass(frozen=True)
class RelabelOptions:
    """Show what hindsight makes of a run's stored rollouts."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    trajectory: int | None = None
    """Id of a stored trajectory; unset: the latest whose instruction was not completed."""
    seed: int = 0
    """Seed of the draw."""
    picture: Path | None = None
    """Draw the trajectory before and after; unset: relabel.png in the run folder."""
    choices: bool = False
    """Also draw how often each goal is chosen with and without importance sampling, to
    choices.png in the run folder (paper Figure 27); takes a while."""


def relabel(arguments: Sequence[str]) -> int:
    options = parse(RelabelOptions, arguments, "amago relabel")
    import numpy as np

    from amago.config import from_dict
    from amago.replay.describe import describe_relabel, goal_choices
    from amago.replay.relabel import StoreRelabeler
    from amago.replay.store import TrajectoryStore
    from amago.report.relabeling import plot_choices, plot_relabel
    from amago.training.run import read_header

    header = read_header(options.run)
    settings = from_dict(header["config"]).relabel
    with TrajectoryStore.open_readonly(options.run / "replay") as store:
        if store.goals is None:
            raise ValueError(
                f"{options.run} has no instructions to relabel; this is for domains with goals, "
                "like package-delivery and maze-runner"
            )
        spec = _worded(header, store.goals)
        chosen = _find(store, options.trajectory)
        before = store.read(chosen)
        transform = StoreRelabeler(store, settings)
        after = transform(before, np.random.default_rng(options.seed))
        print(f"trajectory {chosen}")
        print(describe_relabel(before, after, spec))
        picture = options.picture or options.run / "relabel.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        plot_relabel(before, after, spec, picture)
        print(f"picture: {picture}")
        if options.choices:
            plot_choices(goal_choices(store, spec), options.run / "choices.png")
            print(f"choices: {options.run / 'choices.png'}")
    return 0


def _worded(header: dict[str, Any], stored: GoalSpec) -> GoalSpec:
    """The goals in the words of the run's environment; in plain ones where it is the user's own."""
    from amago.config import from_dict
    from amago.envs.registry import make_vector

    if "env" in header.get("custom", {}):
        return stored
    settings = replace(from_dict(header["config"]).env, num_workers=0)
    lanes = max(1, len(settings.ids))
    with contextlib.closing(make_vector(settings, seed=0, num_lanes=lanes)) as env:
        return env.spec.goals or stored


def _find(store: TrajectoryReader, wanted: int | None) -> int:
    ids = store.ids.tolist()
    if not ids:
        raise ValueError("the replay is empty; train the run a little first")
    if wanted is not None:
        if wanted not in ids:
            raise ValueError(
                f"the replay has no trajectory {wanted}; it has {min(ids)} to {max(ids)}"
            )
        return wanted
    for trajectory_id in reversed(ids):
        trajectory = store.read(trajectory_id)
        assert trajectory.progress is not None and trajectory.instruction is not None
        if trajectory.progress[-1] < len(trajectory.instruction):
            return int(trajectory_id)
    return int(ids[-1])
