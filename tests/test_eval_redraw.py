"""Instructions that not every world allows, and those that none does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from test_run_helpers import command, tiny

from amago import api
from amago.envs.instructions import _MOST_WORLDS, Ask
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.evaluate import evaluate
from amago.goals import GoalSpec, ImpossibleGoalError
from amago.rollout.random_policy import RandomPolicy

DOCS = "(3, 7), (1, 2)"
"""The example of docs/instructions.md: (1, 2) is a wall in some mazes and a way in others."""


def test_worlds_in_which_a_goal_is_impossible_are_redrawn_and_counted() -> None:
    settings = EnvSettings(id="amago/MazeRunner-v0", kwargs={"horizon": 6}, instruction=DOCS)
    lanes = make_vector(settings, seed=0, num_lanes=4)
    result = evaluate(RandomPolicy(lanes.spec, 0), lanes, 12)
    assert result["episodes"] == 12 and result["redrawn"] > 0
    again = make_vector(settings, seed=0, num_lanes=4)
    first, second = lanes.reset(), again.reset()
    assert (second.instruction[:, :2] == [[3, 7], [1, 2]]).all()
    again.episodes = lanes.episodes
    assert evaluate(RandomPolicy(lanes.spec, 0), again, 12)["return_mean"] == result["return_mean"]
    assert first.num_goals.tolist() == [2] * 4


class Never(gym.Env[Any, Any]):
    """No world of it allows anything."""

    goals = GoalSpec(1, 1, low=(0,), high=(9,))
    follows_instructions = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        raise ImpossibleGoalError("7 is a wall")


def test_an_instruction_that_no_world_allows_is_refused_after_a_while() -> None:
    env = Ask(Never(), "7")
    with pytest.raises(ValueError, match=f"'7' is impossible in all of {_MOST_WORLDS} worlds"):
        env.reset(seed=0)
    assert env.redrawn == _MOST_WORLDS


@pytest.mark.parametrize(
    ("spec", "asked", "listed"),
    [
        (GoalSpec(3, 2, low=(0, 0), high=(14, 14)), "eat cow",
         r"1 to 3 goals of 2 numbers from \(0, 0\) to \(14, 14\)"),
        (GoalSpec(3, 2, low=(0, 0), high=(14, 14)), "(3, 99)", r"from \(0, 0\) to \(14, 14\)"),
        (GoalSpec(4, 1, low=(0,), high=(29,)), "(99)", "1 to 4 goals of 1 number from 0 to 29"),
        (GoalSpec(2, 2, "token", vocabulary=("", "light", "red", "blue")), "light green",
         "1 to 2 goals of up to 2 words among light, red, blue"),
    ],
)  # fmt: skip
def test_the_error_for_a_wrong_instruction_lists_what_can_be_asked(spec, asked, listed) -> None:
    with pytest.raises(ValueError, match=listed):
        spec.instruction(asked)


def test_the_example_of_the_docs_works_on_the_command_line(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("amago.api.plot_run", lambda *_: None)
    folder = tmp_path / "run"
    world = {"env.kwargs": {"horizon": 12}, "run.report": False}
    api.train(tiny("maze-runner", world), 0, folder)
    code, out, _ = command(capsys, "eval", folder, "--episodes", 4, "--instruction", DOCS)
    assert code == 0 and " redrawn" in " ".join(out.split()) and "4 rollouts" in out
    code, _, err = command(capsys, "eval", folder, "--instruction", "eat cow")
    assert code == 2 and "1 to 3 goals of 2 numbers" in err
