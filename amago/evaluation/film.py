"""Rollouts as films: what happened, what was perceived, and how it is going."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from amago.envs.catalogue import action_names
from amago.envs.eyes import open_eyes
from amago.envs.registry import MakeEnv, first_task
from amago.envs.settings import EnvSettings
from amago.evaluation.panel import Shot, beside, panel
from amago.evaluation.play import PlaySettings, make_lanes, play
from amago.types import Array, EnvSpec, Policy, Step, Timestep, VectorEnv

_FRAMES_PER_SECOND = 12
_MAX_WORLDS = 8
_HELD = _FRAMES_PER_SECOND
"""Frames for which the end of a rollout stays."""
_PARTS = 4
"""The first and the last part of a rollout are a quarter of it each,"""
_FEWEST = 8
"""and at least so many steps, where there are as many."""
_SAMPLED = 4
"""A GIF's colours are those of so many frames, and of the first."""


@dataclass(frozen=True)
class FilmSettings:
    """What a film shows, and how large."""

    worlds: int = 1
    """Rollouts side by side, each in a world of its own."""
    ends: bool = False
    """The first and the last quarter of each rollout beside each other, instead of all of it."""
    fog: bool = True
    """Hide what the player has not perceived yet, where the domain knows."""
    side: int = 480
    """Pixels of a picture's shorter side, at least; small pictures are enlarged."""
    max_steps: int | None = None
    """Steps that a film shows of a rollout, or of each part of it; unset: all."""

    def __post_init__(self) -> None:
        if not 1 <= self.worlds <= _MAX_WORLDS:
            raise ValueError(f"a film shows 1 to {_MAX_WORLDS} worlds, got {self.worlds}")


def check_video(path: Path) -> None:
    """Fail before anything is played if the film could not be written."""
    if path.suffix not in (".mp4", ".gif"):
        raise ValueError(f"--video takes a file that ends in .mp4 or .gif, got {path}")
    if path.suffix == ".mp4" and importlib.util.find_spec("imageio") is None:
        raise ValueError(
            "an .mp4 file needs imageio, which is not installed: write a .gif file, or "
            "pip install 'amago[video]', or in a checkout of amago "
            "pip install -c constraints.txt -e '.[video]'"
        )


def record_video(
    policy: Policy,
    env: EnvSettings,
    settings: PlaySettings,
    path: Path,
    film: FilmSettings | None = None,
    *,
    make_env: MakeEnv | None = None,
) -> None:
    """Play in one lane and write what it looks like to an .mp4 or .gif file."""
    check_video(path)
    film = film or FilmSettings()
    rollouts = record(policy, env, settings, film, make_env=make_env)
    path.parent.mkdir(parents=True, exist_ok=True)
    _WRITERS[path.suffix](path, Film(rollouts, film))


def record(
    policy: Policy,
    env: EnvSettings,
    settings: PlaySettings,
    film: FilmSettings,
    *,
    make_env: MakeEnv | None = None,
) -> list[list[Shot]]:
    """The shots of one rollout per world."""
    env = replace(env if make_env is not None else first_task(env), num_workers=0)
    with contextlib.closing(make_lanes(env, settings.one_rollout(), make_env)) as lane:
        rollouts = []
        for number in range(film.worlds):
            camera = _Camera(lane, env.id if make_env is None else "", fog=film.fog)
            play(policy, lane, 1, first_rollout=number, watchers=[camera])
            rollouts.append(camera.shots)
    return rollouts


class Film(Sequence[Array]):
    """The frames of a film, all of one size, each made when it is asked for."""

    def __init__(self, rollouts: Sequence[Sequence[Shot]], settings: FilmSettings) -> None:
        self._parts = [part for shots in rollouts for part in _parts(shots, settings)]
        self._side = settings.side if len(self._parts) == 1 else max(1, settings.side * 2 // 3)
        self._num_goals = max(len(shot.goals) for shots in rollouts for shot in shots)

    def __len__(self) -> int:
        return max(len(shots) for _, shots in self._parts) + _HELD

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return beside(
            [
                # Whoever is done waits for the others.
                panel(shots[min(number, len(shots) - 1)], title, self._side, self._num_goals)
                for title, shots in self._parts
            ]
        )


def _parts(shots: Sequence[Shot], film: FilmSettings) -> list[tuple[str, Sequence[Shot]]]:
    """What is shown of a rollout, with its title where it is not all of it."""
    steps, longest = len(shots) - 1, film.max_steps or len(shots)
    if not film.ends:
        return [("", shots[: longest + 1])]
    count = min(longest, max(steps // _PARTS, min(steps, _FEWEST)))
    return [
        (f"first {count} steps", shots[: count + 1]),
        (f"last {count} steps", shots[-count - 1 :]),
    ]


class _Camera:
    """Watches a lane: a shot per row."""

    def __init__(self, lane: VectorEnv, env_id: str, *, fog: bool) -> None:
        self.lane, self.shots = lane, list[Shot]()
        self._names = action_names(env_id, lane.spec.action)
        self._fog, self._eyes = fog, None if not fog else open_eyes(lane)

    def __call__(self, step: Step) -> None:
        *ended, (rows, _) = step.parts()
        if not ended:
            self._add(rows, self._picture())
        elif self.shots:
            # The lane was reset in this call and shows its next world: the last picture stays.
            self._add(ended[0][0], None)

    def _picture(self) -> Array:
        if not self.shots and self._fog:
            self._eyes = open_eyes(self.lane)  # of this rollout, not of the one before
        if self._eyes is None:
            return self.lane.render()
        self._eyes.look()
        return self._eyes.frame()

    def _add(self, rows: Timestep, picture: Array | None) -> None:
        before = self.shots[-1] if self.shots else None
        reward = float(rows.prev_reward[0]) if before else 0.0
        new_trial = bool(rows.first[0]) and before is not None
        time = int(rows.time[0])
        shot = Shot(
            picture=Shot.packed(picture) if picture is not None else self.shots[-1].picture,
            time=time,
            horizon=self.lane.spec.horizon,
            total=reward + (before.total if before else 0.0),
            trial=(before.trial if before else 1) + new_trial,
            action=_written_action(self.lane.spec, rows, self._names) if before else "",
            goals=tuple(_goal_marks(self.lane.spec, rows)),
            rewards=(*(before.rewards if before else ()), *((time,) if reward > 0 else ())),
            trials=(*(before.trials if before else ()), *((time,) if new_trial else ())),
        )
        self.shots.append(shot)


def _written_action(spec: EnvSpec, rows: Timestep, names: Sequence[str]) -> str:
    """The action of lane 0 that led to its row."""
    action = np.ravel(rows.prev_action[0])
    if spec.action.kind == "discrete":
        return names[int(action[0])]
    if spec.action.kind == "continuous":
        return " ".join(f"{number:+.1f}" for number in action[:6]) + (
            " …" if len(action) > 6 else ""
        )
    return " ".join(str(int(number)) for number in action)


def _goal_marks(spec: EnvSpec, rows: Timestep) -> list[tuple[str, bool]]:
    """The goals of lane 0's instruction, and whether each is complete."""
    if spec.goals is None or rows.instruction is None:
        return []
    assert rows.num_goals is not None and rows.progress is not None
    asked, complete = rows.instruction[0, : rows.num_goals[0]], int(rows.progress[0])
    return [(spec.goals.write(goal[None]), index < complete) for index, goal in enumerate(asked)]


def gif_bytes(film: Film) -> bytes:
    """A GIF file with one set of colours for all frames; flat pictures then stay small."""
    from PIL import Image

    sample = [film[number * (len(film) - 1) // _SAMPLED] for number in range(_SAMPLED + 1)]
    palette = Image.fromarray(np.concatenate(sample)).quantize(256)

    def indexed(frame: Array) -> Image.Image:
        return Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)

    file, made = io.BytesIO(), map(indexed, film)
    next(made).save(
        file,
        "GIF",
        save_all=True,
        append_images=made,
        duration=1000 // _FRAMES_PER_SECOND,
        loop=0,
    )
    return file.getvalue()


def _write_gif(path: Path, film: Film) -> None:
    path.write_bytes(gif_bytes(film))


def _write_mp4(path: Path, film: Film) -> None:
    import imageio.v2 as imageio

    writer: Any = imageio.get_writer(path, fps=_FRAMES_PER_SECOND)
    with contextlib.closing(writer):
        for frame in film:
            writer.append_data(frame)


_WRITERS: dict[str, Callable[[Path, Film], None]] = {
    ".gif": _write_gif,
    ".mp4": _write_mp4,
}
