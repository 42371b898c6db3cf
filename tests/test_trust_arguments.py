"""Arguments of environments that make no sense are refused before anything is created."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from test_run_helpers import command

from amago.envs.catalogue import ENTRY_POINTS, TASKS, _task_arguments
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings

NONSENSE: list[Any] = [
    "abc", "a" * 10_000, [1], {}, float("nan"), float("inf"), -1, 2.5, True, None, 10**30, 10**9,
]  # fmt: skip


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A world of gigabytes is a MemoryError here, not the end of the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("task", TASKS)
def test_any_argument_of_a_task_is_taken_or_refused(task: str, little_memory: None) -> None:
    for name in _task_arguments(task):
        for value in NONSENSE:
            settings = EnvSettings(id=task, kwargs={name: value})
            try:
                vector = make_vector(settings, seed=0, num_lanes=1)
            except ValueError as error:
                assert len(str(error)) < 500, (name, value)
                continue
            refused = isinstance(value, str | list | dict) or value in (10**30, 10**9)
            assert not refused and value == value, (name, value)
            vector.reset()


def test_other_environments_of_amago_check_their_arguments_too() -> None:
    name = next(name for name in ENTRY_POINTS if "HalfCheetah" in name)
    with pytest.raises(ValueError, match=r"takes .*, got 'far'"):
        make_vector(EnvSettings(id=name, kwargs={"horizon": "far"}), seed=0, num_lanes=1)


def test_what_the_constructor_of_an_environment_does_not_like_is_a_users_error() -> None:
    class Picky(gym.Env[Any, Any]):
        def __init__(self, size: Any = 1, weight: Any = 1.0) -> None:
            self.size = size + 1

    gym.register("Picky-v0", Picky)
    with pytest.raises(ValueError, match=r"cannot be made with .*'size': 'large'.*correct"):
        make_vector(EnvSettings(id="Picky-v0", kwargs={"size": "large"}), seed=0, num_lanes=1)
    with pytest.raises(ValueError, match=r"--env.kwargs.weight of Picky-v0 takes a number"):
        kwargs = {"weight": float("nan")}
        make_vector(EnvSettings(id="Picky-v0", kwargs=kwargs), seed=0, num_lanes=1)
    del gym.registry["Picky-v0"]


@pytest.mark.parametrize("value", ["abc", "nan", "1e400", "9" * 40, "[1,2]", "-3"])
def test_a_command_with_such_an_argument_creates_nothing(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    line = ["train", "wind", "--env.kwargs.horizon", value, "--run-dir", folder]
    code, _, err = command(capsys, *line)
    assert code == 2 and "Traceback" not in err and "unexpected" not in err, err
    assert "horizon" in err and not folder.exists()


def test_debug_shows_where_an_error_comes_from() -> None:
    from amago.cli import main

    line = ["train", "wind", "--env.kwargs.horizon", "abc"]
    with pytest.raises(ValueError, match="takes a whole number"):
        main([*line, "--debug"])
    with pytest.raises(SystemExit):
        main(line)
