"""`amago relabel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from amago.cli.parsing import parse

if TYPE_CHECKING:
    from amago.goals import GoalSpec
    from amago.replay.reader import TrajectoryReader
    from amago.replay.relabel import Relabeler
    from amago.replay.settings import RelabelSettings


@dataclass(frozen=True)
class RelabelOptions:
    """Show what hindsight makes of a run's stored rollouts."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    trajectory: int | None = None
    """Id of a stored trajectory; unset: the latest that failed and has something to choose."""
    seed: int = 0
    """Seed of the draw."""
    picture: Path | None = None
    """Draw the trajectory before and after; unset: relabel.png in the run folder."""
    trust: bool = False
    """Import the module of the run's environment, for its words: the run is yours."""
    choices: bool = False
    """Also count how often each goal is chosen with and without importance sampling, to
    choices.png and choices.csv in the run folder (paper Figure 27); takes a while."""


def relabel(arguments: Sequence[str]) -> int:
    options = parse(RelabelOptions, arguments, "amago relabel")
    import numpy as np

    from amago.config import from_dict
    from amago.replay.describe import describe_relabel
    from amago.replay.relabel import StoreRelabeler
    from amago.replay.store import TrajectoryStore
    from amago.report.relabeling import plot_relabel
    from amago.saved.header import read_header

    header = read_header(options.run)
    settings = from_dict(header["config"]).relabel
    with TrajectoryStore.open_readonly(options.run / "replay") as store:
        if store.goals is None:
            raise ValueError(
                f"{options.run} has no instructions to relabel; this is for domains with goals, "
                "like package-delivery and maze-runner"
            )
        spec = _worded(header, store.goals, options.trust)
        relabeler = StoreRelabeler(store, settings).snapshot()
        chosen = _find(store, relabeler, store.goals, options.trajectory)
        stored = store.read(chosen)
        before, choice, after = relabeler.look_back(stored, np.random.default_rng(options.seed))
        print(f"trajectory {chosen}")
        if before is not stored:
            assert stored.instruction is not None
            print(f"stored     {spec.write(stored.instruction)}; this run keeps the first goal")
        print(describe_relabel(before, after, spec, choice))
        picture = options.picture or options.run / "relabel.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        plot_relabel(before, after, spec, picture, choice)
        print(f"picture: {picture}")
        if options.choices:
            _show_choices(store, spec, settings, options.run)
    return 0


def _show_choices(
    store: TrajectoryReader, spec: GoalSpec, settings: RelabelSettings, folder: Path
) -> None:
    """Figure 27 of a run: the picture, its numbers and the most of them in a table."""
    from rich.console import Console

    from amago.replay.describe import goal_choices
    from amago.report.relabeling import choice_table, plot_choices, write_choices

    if settings.relabel == "none":
        print("choices: none, since this run does not relabel (relabel.relabel = 'none')")
        return
    choices = goal_choices(store, spec, settings)
    if not choices:
        print("choices: none, since no stored rollout with open goals achieved any")
        return
    Console().print(choice_table(choices))
    plot_choices(choices, folder / "choices.png")
    write_choices(choices, folder / "choices.csv")
    print(f"choices: {folder / 'choices.png'} and {folder / 'choices.csv'}")


def _worded(header: dict[str, Any], stored: GoalSpec, trust: bool) -> GoalSpec:
    """The goals in the words of the run's environment; in plain ones where it cannot be made."""
    from gymnasium.error import Error

    from amago.config import from_dict
    from amago.envs.registry import env_spec
    from amago.saved.trust import check_env

    if "env" in header.get("custom", {}):
        return stored
    config = from_dict(header["config"])
    try:
        check_env("the run", config.env, trust=trust)
        return env_spec(config.env).goals or stored
    except (ValueError, ImportError, Error) as error:
        print(f"goals are written as they are stored, without the run's environment: {error}")
        return stored


def _find(
    store: TrajectoryReader, relabeler: Relabeler, goals: GoalSpec, wanted: int | None
) -> int:
    from amago.replay.describe import open_candidates

    # Protected trajectories are demonstrations, and the first of them is -1: the run's own
    # come first, the latest before the others.
    own = range(*store.window)
    ids: list[int] = [*reversed(own), *range(-1, -1 - store.num_protected, -1)]
    if not ids:
        raise ValueError("the replay is empty; train the run a little first")
    if wanted is not None:
        if wanted not in ids:
            parts = [f"{own[0]} to {own[-1]}"] if own else []
            if store.num_protected:
                parts.append(f"-1 to {-store.num_protected}, which are protected")
            raise ValueError(f"the replay has no trajectory {wanted}; it has {' and '.join(parts)}")
        return wanted
    for trajectory_id in ids:
        if len(open_candidates(relabeler.begin(store.read(trajectory_id)), goals).rows):
            return trajectory_id
    return ids[0]
