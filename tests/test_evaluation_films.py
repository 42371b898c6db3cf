"""Films: size, the strip below the picture, fog, several worlds, both ends of a rollout."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from amago.envs.domains.package_delivery import PackageDelivery
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.tasks import draw
from amago.evaluation.attention import events
from amago.evaluation.film import Film, FilmSettings, _goal_marks, record, record_video
from amago.evaluation.panel import Shot, _enlarged, beside, panel
from amago.evaluation.play import PlaySettings
from amago.types import Array, Timestep, Trajectory

ROOM = EnvSettings(id="amago/DarkKeyToDoor-v0", kwargs={"grid": 4, "horizon": 12})
LEFT = 1
"""In Crafter; two steps to the left of the start (32, 32), (30, 30) is reached."""


class Player:
    """Chooses an action by the number of the step."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Timestep, state: Any) -> tuple[Array, Any]:
        return np.array([self._choose(int(time)) for time in timestep.time]), state

    def select(self, state: Any, lanes: Array) -> Any:
        return state


def _sweep(time: int) -> int:
    """Row after row: down to a corner first, then back and forth."""
    return (0, 0, 0, 3, 3, 3)[time] if time < 6 else (2, 2, 2, 1, 0, 0, 0, 1)[(time - 6) % 8]


def _cells(frame: Array, colour: draw.Colour) -> int:
    return int((frame == colour).all(-1).sum())


def test_a_strip_says_step_trial_return_and_action() -> None:
    env = EnvSettings(id="amago/DarkKeyToDoor-v0", kwargs={"grid": 1, "horizon": 6})
    shots = record(Player(lambda _: 4), env, PlaySettings(), FilmSettings())[0]
    assert [shot.time for shot in shots] == list(range(7))
    # Key and door share the only cell: every step is a trial that earns both.
    assert [shot.total for shot in shots] == [2.0 * n for n in range(7)]
    assert [shot.trial for shot in shots] == [1, 2, 3, 4, 5, 6, 6]
    assert shots[0].action == "" and {shot.action for shot in shots[1:]} == {"stay"}
    assert shots[-1].rewards == (1, 2, 3, 4, 5, 6) and shots[-1].trials == (1, 2, 3, 4, 5)
    with_strip = panel(shots[3], "", 480, 0)
    assert (with_strip[: -len(with_strip) // 5] != 0).any()
    assert not np.array_equal(with_strip, panel(shots[4], "", 480, 0))


@pytest.mark.parametrize("shape", [(16, 16), (224, 224), (100, 900), (600, 800)])
def test_small_pictures_are_enlarged_pixel_by_pixel(shape: tuple[int, int]) -> None:
    picture = np.random.default_rng(0).integers(0, 255, (*shape, 3), np.uint8)
    large = _enlarged(picture, 480)
    factor = len(large) // len(picture)
    assert np.array_equal(large[::factor, ::factor], picture)
    assert min(large.shape[:2]) >= 480 or max(large.shape[:2]) > 750
    assert shape != (600, 800) or factor == 1


def test_a_dark_room_shows_the_cells_that_were_entered_and_what_was_found() -> None:
    everything = FilmSettings(fog=False)
    player = Player(_sweep)
    env = EnvSettings(id="amago/DarkKeyToDoor-v0", kwargs={"grid": 4, "horizon": 40})
    dark = record(player, env, PlaySettings(world_seed=3), FilmSettings())[0]
    bright = record(player, env, PlaySettings(world_seed=3), everything)[0]
    fog = [_cells(shot.frame, draw.FOG) for shot in dark]
    assert fog[0] > 0.9 * fog[0] > fog[6] > fog[-1] and fog == sorted(fog, reverse=True)
    assert _cells(bright[0].frame, draw.GOAL) > 0 == _cells(dark[0].frame, draw.GOAL)
    assert _cells(bright[0].frame, draw.HINT) > 0 == _cells(dark[0].frame, draw.HINT)
    for before, now in pairwise(dark):
        appeared = _cells(now.frame, draw.GOAL) > 0 == _cells(before.frame, draw.GOAL)
        assert not appeared or now.total > before.total  # the door is seen when it pays
    assert dark[-1].total >= 2 and _cells(dark[-1].frame, draw.GOAL) > 0


def test_the_next_rollout_begins_in_the_dark_again() -> None:
    first, second = record(Player(_sweep), ROOM, PlaySettings(), FilmSettings(worlds=2))
    assert first[0].time == second[0].time == 0
    least = min(_cells(shot.frame, draw.FOG) for shot in first)
    assert _cells(second[0].frame, draw.FOG) > least


def test_a_maze_is_seen_as_far_as_the_sensors_reach() -> None:
    env = EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 11, "horizon": 9})
    up = record(Player(lambda _: 1), env, PlaySettings(), FilmSettings())[0]
    whole = record(Player(lambda _: 1), env, PlaySettings(), FilmSettings(fog=False))[0]
    assert _cells(whole[0].frame, draw.FOG) == 0 < _cells(up[-1].frame, draw.FOG)
    assert _cells(up[-1].frame, draw.FOG) < _cells(up[0].frame, draw.FOG)
    clear = (up[-1].frame != draw.FOG).any(-1)
    assert np.array_equal(up[-1].frame[clear], whole[-1].frame[clear])


def test_a_road_shows_a_forks_side_once_it_was_tried() -> None:
    task = PackageDelivery()
    task.allocate(1)
    task.reset_lanes(np.array([0]), np.array([5]))
    eyes, fork = task.eyes(0), int(np.flatnonzero(task.side[0])[0])
    eyes.look()
    for _ in range(fork):
        task.step(np.array([0]))
        eyes.look()
    assert task.position[0] == fork and _cells(eyes.frame(), draw.HINT) == 0
    task.step(np.array([3 - task.side[0, fork]]))  # the wrong side: back to the start
    eyes.look()
    assert task.position[0] == 0 and _cells(eyes.frame(), draw.HINT) > 0


def test_an_active_t_maze_hides_the_goal_until_the_cue_was_read() -> None:
    env = EnvSettings(id="amago/ActiveTMaze-v0", kwargs={"corridor": 3})
    ahead = record(Player(lambda _: 0), env, PlaySettings(), FilmSettings())[0]
    asking = record(Player(lambda t: 2 if t == 0 else 0), env, PlaySettings(), FilmSettings())[0]
    assert all(_cells(shot.frame, draw.GOAL) == 0 for shot in ahead)
    assert [_cells(shot.frame, draw.GOAL) > 0 for shot in asking[:2]] == [False, True]


def test_worlds_stand_side_by_side_and_wait_for_each_other() -> None:
    film = FilmSettings(worlds=3, side=96)
    rollouts = record(Player(_sweep), ROOM, PlaySettings(), film)
    pictures = [shots[0].frame for shots in record(Player(_sweep), ROOM, PlaySettings(),
                                                   FilmSettings(worlds=3, fog=False))]  # fmt: skip
    assert any(not np.array_equal(pictures[0], other) for other in pictures[1:])
    made = list(Film([rollouts[0], rollouts[1][:3], rollouts[2]], film))
    assert len({frame.shape for frame in made}) == 1 and made[0].shape[1] > 2 * made[0].shape[0]
    third = made[0].shape[1] // 3
    assert np.array_equal(made[3][:, third : 2 * third], made[-1][:, third : 2 * third])
    with pytest.raises(ValueError, match="1 to 8 worlds, got 9"):
        FilmSettings(worlds=9)


@pytest.mark.parametrize(("steps", "count"), [(5, 5), (12, 8), (40, 10)])
def test_the_ends_of_a_rollout_stand_beside_each_other(steps: int, count: int) -> None:
    film = FilmSettings(ends=True, side=96)
    room = EnvSettings(id=ROOM.id, kwargs={"grid": 4, "horizon": steps})
    shots = record(Player(_sweep), room, PlaySettings(), film)[0]
    made = Film([shots], film)[0]
    left = panel(shots[0], f"first {count} steps", 64, 0)
    right = panel(shots[-count - 1], f"last {count} steps", 64, 0)
    assert np.array_equal(made, beside([left, right]))


def test_the_film_ends_with_what_the_last_step_completed() -> None:
    env = EnvSettings(
        id="amago/Crafter-v0", kwargs={"horizon": 9}, instruction="travel to (30, 30), eat cow"
    )
    player = Player(lambda _: LEFT)
    shots = record(player, env, PlaySettings(), FilmSettings())[0]
    travelled = [shot.goals[0] for shot in shots]
    assert travelled == [("travel to (30, 30)", n >= 2) for n in range(10)]
    assert all(shot.goals[1] == ("eat cow", False) for shot in shots)


def test_goals_are_marked_when_they_are_complete() -> None:
    env = make_vector(
        EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 11}), seed=1, num_lanes=2
    )
    rows = env.reset()
    assert rows.instruction is not None and rows.num_goals is not None
    assert env.spec.goals is not None
    written = [env.spec.goals.write(g[None]) for g in rows.instruction[0, : rows.num_goals[0]]]
    assert _goal_marks(env.spec, rows) == [(text, False) for text in written]


@pytest.mark.parametrize(("name", "magic"), [("a.gif", b"GIF8"), ("a.mp4", b"ftyp")])
def test_films_are_written_frame_by_frame(name: str, magic: bytes, tmp_path: Path) -> None:
    path = tmp_path / "new" / name
    record_video(Player(_sweep), ROOM, PlaySettings(), path, FilmSettings(side=96))
    assert magic in path.read_bytes()[:12]
    if name == "a.gif":
        with Image.open(path) as film:
            assert getattr(film, "n_frames", 1) > 6


def test_shots_give_their_picture_back() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (5, 7, 3), np.uint8)
    shot = Shot(Shot.packed(picture), 0, None, 0.0, 1, "", (), (), ())
    assert np.array_equal(shot.frame, picture)


def test_events_of_a_rollout_are_trial_starts_rewards_and_goals() -> None:
    def rollout(reward: list[float], first: list[int], progress: list[int] | None) -> Trajectory:
        rows = len(reward)
        return Trajectory(
            {}, np.zeros(rows), np.array(reward), np.isin(np.arange(rows), first),
            np.zeros(rows, np.bool_), progress=None if progress is None else np.array(progress),
        )  # fmt: skip

    assert events(rollout([0, 0, 1, 0, 0], [0, 3], None)) == {"trial starts": [3], "rewards": [2]}
    assert events(rollout([0, 0, 1, 0, 1], [0], [0, 0, 1, 1, 2])) == {"goals": [2, 4]}
    assert events(rollout([0, 1, 1, 1, 1], [0], None)) == {}
