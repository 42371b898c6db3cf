"""Evaluations that ask for something: --instruction and --table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_run_helpers import command, tiny

import amago
from amago.config import override
from amago.envs.catalogue import preset
from amago.envs.domains.crafter.goals import TABLE_GOALS
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.instructions import success_per_instruction
from amago.evaluation.play import PlaySettings

pytestmark = pytest.mark.usefixtures("no_curves")


@pytest.fixture(scope="module")
def crafter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = override(
        tiny("crafter"),
        {
            "env.kwargs": {"horizon": 8},
            "env.num_lanes": 2,
            "env.eval_lanes": 2,
            "run.epochs": 2,
            "run.updates_per_epoch": 1,
            "run.eval_episodes": 2,  # a world of Crafter takes long to make
            "run.final_eval_episodes": 2,
        },
    )
    folder = tmp_path_factory.mktemp("crafter") / "run"
    amago.train(config, seed=0, run_dir=folder)
    return folder


def test_every_lane_is_asked_for_the_instruction_of_the_settings():
    settings = replace(preset("maze-runner").env, num_lanes=3)
    worlds = make_vector(settings, seed=5, num_lanes=3).reset()
    goal = worlds.instruction[0, 0]
    text = f"({goal[0]}, {goal[1]})"
    asked = make_vector(replace(settings, instruction=text), seed=5, num_lanes=1)
    rows = asked.reset()
    assert rows.num_goals.tolist() == [1] and (rows.instruction[0, 0] == goal).all()
    assert (rows.world_seed == worlds.world_seed[:1]).all()


@pytest.mark.parametrize(
    ("env_id", "instruction", "message"),
    [
        ("CartPole-v1", "eat cow", "has no goals"),
        ("amago/MazeRunner-v0", "eat cow", "expected a number in a goal"),
        ("amago/MazeRunner-v0", "(1, 1), (1, 2), (1, 3), (1, 4)", "1 to 3 goals"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(env_id, instruction, message):
    settings = EnvSettings(id=env_id, instruction=instruction)
    with pytest.raises(ValueError, match=message):
        make_vector(settings, seed=0, num_lanes=1)


def test_an_agent_is_asked_in_words_and_filmed(crafter, tmp_path, capsys):
    film = tmp_path / "out.gif"
    words = "collect sapling, place plant x2, eat cow"
    code, out, _ = command(
        capsys, "eval", crafter, "--episodes", 2, "--instruction", words, "--video", film, "--json"
    )
    assert code == 0 and json.loads(out)["episodes"] == 2
    assert film.read_bytes().startswith(b"GIF8")
    code, out, _ = command(
        capsys, "eval", crafter, "--episodes", 1, "--instruction", words,
        "--video", tmp_path / "out.mp4",
    )  # fmt: skip
    assert code == 0 and "video: " in out and (tmp_path / "out.mp4").stat().st_size > 1000
    code, _, error = command(capsys, "eval", crafter, "--instruction", "eat house")
    assert code == 2 and "eat house" in error


def test_relabeling_is_told_in_crafters_own_words(crafter, capsys):
    told = ""
    for number in range(4):  # one rollout of each of two lanes in each of two epochs
        code, out, _ = command(capsys, "relabel", crafter, "--trajectory", number)
        assert code == 0
        told += out
    assert re.search(r"travel to \(\d+, \d+\)", told) and not re.search(r"travel \d", told)


def test_the_table_has_every_instruction_of_the_paper_beside_random_play(crafter, capsys):
    code, out, _ = command(capsys, "eval", crafter, "--table", "crafter", "--episodes", 1, "--json")
    rows = json.loads(out)
    assert code == 0 and [row["instruction"] for row in rows] == [*TABLE_GOALS, "(as drawn)"]
    assert all(row[name] in (0.0, 1.0) for row in rows for name in ("success", "random"))
    for more in (("--instruction", "eat cow"), ("--video", "out.mp4"), ("--attention", "out.png")):
        code, _, error = command(capsys, "eval", crafter, "--table", "crafter", *more)
        assert code == 2 and "--table plays alone" in error


class Chooser:
    """Always takes the same action."""

    def __init__(self, action):
        self.action = action

    def initial_state(self, num_lanes):
        return None

    def act(self, timestep, state):
        return np.full(len(timestep), self.action), state


LEFT = 1
"""Two steps to the left of the start (32, 32), (30, 30) is reached."""


def test_a_table_tells_instructions_and_players_apart():
    settings = EnvSettings(id="amago/Crafter-v0", kwargs={"horizon": 3})
    spec = make_vector(settings, seed=0, num_lanes=1).spec
    asked = ("travel to (30, 30)", "travel to (35, 30)", "place stone")
    rows = success_per_instruction(Chooser(LEFT), spec, settings, PlaySettings(8), asked)
    assert [row["instruction"] for row in rows] == [*asked, "(as drawn)"]
    assert rows[0]["success"] > 0.5 > rows[0]["random"]
    assert [row["success"] for row in rows[1:3]] == [0.0, 0.0]


def test_an_undirected_agent_is_judged_by_the_same_table():
    undirected = {"horizon": 4, "instructions": "none"}
    spec = make_vector(
        EnvSettings(id="amago/Crafter-v0", kwargs=undirected), seed=0, num_lanes=1
    ).spec
    settings = EnvSettings(id="amago/Crafter-v0", kwargs={**undirected, "instructions": "random"})
    asked = ("travel to (30, 30)", "travel to (35, 30)")
    rows = success_per_instruction(Chooser(LEFT), spec, settings, PlaySettings(8), asked)
    assert spec.goals is None and rows[0]["success"] > 0.5 and rows[1]["success"] == 0.0


def test_a_table_of_other_observations_is_refused():
    settings = EnvSettings(id="amago/Crafter-v0")
    pixels = replace(settings, kwargs={"observation": "pixels"})
    spec = make_vector(settings, seed=0, num_lanes=1).spec
    with pytest.raises(ValueError, match="trained on amago/Crafter-v0 with observations"):
        success_per_instruction(Chooser(0), spec, pixels, PlaySettings(1), ("eat cow",))
    expanded = replace(settings, kwargs={"expanded": True})
    with pytest.raises(ValueError, match="goals ExpandedCrafterGoals"):
        success_per_instruction(Chooser(0), spec, expanded, PlaySettings(1), ("eat cow",))
