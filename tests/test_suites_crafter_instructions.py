"""Crafter that follows instructions: what is asked, what is paid, and the same in hindsight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from amago.envs.domains.crafter.env import Crafter
from amago.envs.domains.crafter.game import ACTIONS
from amago.envs.domains.crafter.goals import goal
from amago.envs.domains.crafter.instructions import draw_instruction, tech_tree
from amago.envs.domains.crafter.spec import goal_spec
from amago.envs.instructions import FollowInstructions, goals_of
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, make_lanes
from amago.evaluation.play import play as play_rollouts
from amago.goals import follow
from amago.replay.rarity import Rarity, combine, count
from amago.replay.relabel import Relabeler
from amago.replay.settings import RelabelSettings
from amago.rollout.collect import collect
from amago.rollout.driver import drive
from amago.rollout.exploration import Exploration
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.recorder import Recorder
from amago.rollout.settings import ExplorationSettings

SPEC = goal_spec(expanded=True)


def play(env: Any, seed: int, actions: Any, asked: Any = None) -> tuple[list[float], list[Any]]:
    """Rewards and achieved goals per step, until the end."""
    env.reset(seed=seed, options=None if asked is None else {"instruction": asked})
    rewards, achieved = [], []
    for action in actions:
        _, reward, terminated, _, info = env.step(action)
        rewards.append(reward)
        achieved.append(np.array(info["achieved"], np.uint8).reshape(-1, 3))
        if terminated:
            break
    return rewards, achieved


def test_the_spec_reads_and_writes_crafters_own_words():
    spec = goal_spec(expanded=False)
    text = "collect sapling, place plant x2, travel to (10, 10)"
    assert spec.write(spec.instruction(text)) == text
    assert spec == Crafter(horizon=1).goals and spec != goal_spec(expanded=True)
    with pytest.raises(ValueError, match="1 to 5 goals"):
        spec.instruction("eat cow x99999999")
    with pytest.raises(ValueError, match="1 to 5 goals"):
        spec.instruction("eat cow x6")


@pytest.mark.parametrize("text", ["build at (30, 30)", "near iron", "eat cow, near diamond"])
def test_goals_of_expanded_crafter_are_refused_elsewhere(text):
    with pytest.raises(ValueError, match=r"--env\.kwargs\.expanded"):
        goal_spec(expanded=False).instruction(text)
    assert goal_spec(expanded=True).write(goal_spec(expanded=True).instruction(text)) == text


def test_tokens_that_are_no_goal_are_refused():
    with pytest.raises(ValueError, match="no step"):
        goal_spec(expanded=True).instruction([goal("wake", "cow")])


def test_the_instruction_belongs_to_the_seed_and_the_world_does_not_depend_on_it():
    env = FollowInstructions(Crafter())
    first, info = env.reset(seed=4)
    assert info["instruction"] == draw_instruction(np.random.default_rng(4)).tolist()
    second, other = env.reset(seed=4, options={"instruction": "wake up"})
    assert SPEC.write(other["instruction"]) == "wake up"
    assert all(np.array_equal(first[key], second[key]) for key in first)
    assert len({SPEC.write(env.reset(seed=seed)[1]["instruction"]) for seed in range(6)}) > 4


def test_completing_goals_in_order_is_paid_and_all_of_them_end_the_rollout():
    env = FollowInstructions(Crafter())
    env.reset(seed=0, options={"instruction": "collect drink x2, place stone"})
    game = env.unwrapped.game
    x, y = (int(value) for value in game.player.pos)
    game.world[x, y + 1] = "water"
    game.player.inventory["stone"] = 3
    line = ["noop", "do", "noop", "do", "place_stone"]
    steps = [env.step(ACTIONS.index(action)) for action in line]
    assert [step[1] for step in steps] == [0, 1, 0, 1, 1]
    assert [step[2] for step in steps] == [False] * 4 + [True]
    assert [step[4]["success"] for step in steps] == [False] * 4 + [True]


def test_undirected_crafter_has_no_goals_and_its_own_reward():
    env = Crafter(instructions="none")
    assert goals_of(env) is None and env.reset(seed=0)[1] == {}
    vector = make_vector(
        EnvSettings(id="amago/Crafter-v0", kwargs={"instructions": "none"}), seed=0, num_lanes=1
    )
    assert vector.spec.goals is None
    with pytest.raises(ValueError, match="random, tech-tree or none"):
        Crafter(instructions="weighted")


def test_expanded_crafter_asks_for_the_tech_tree_unless_told_otherwise():
    env = Crafter(expanded=True)
    env.curriculum = len(tech_tree(expanded=True)) - 1
    asked = {
        tuple(tokens)
        for seed in range(120)
        for tokens in env._asked(np.random.default_rng(seed))["instruction"].tolist()
    }
    assert {goal("near", "iron"), goal("near", "diamond")} <= asked
    assert Crafter().instructions == "random"
    assert Crafter(expanded=True, instructions="random").instructions == "random"


class Busy:
    """Mostly walks and does, so that things happen."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Any, state: None) -> tuple[Any, None]:
        return self.rng.choice([1, 2, 3, 4, 5, 5, 5, 6, 8, 10], len(timestep)), None


@pytest.mark.parametrize("expanded", [False, True])
def test_relabeled_rollouts_are_paid_as_the_real_world_pays(expanded):
    kwargs = {"expanded": expanded, "horizon": 120}
    vector = make_vector(EnvSettings(id="amago/Crafter-v0", kwargs=kwargs), seed=3, num_lanes=6)
    recorder, kept = Recorder(vector.spec, vector.tasks), []
    for step in drive(vector, Busy(0)):
        kept += recorder.add(step)
        if len(kept) >= 6:
            break
    rarity = Rarity(combine([count(trajectory) for trajectory in kept]))
    world = FollowInstructions(Crafter(**kwargs))
    generator, changed = np.random.default_rng(1), 0
    for trajectory in kept:
        actions = trajectory.prev_action[1:]
        for mode, importance in (("some", True), ("some", False), ("all", True)):
            settings = RelabelSettings(mode, importance)
            relabeler = Relabeler(settings, rarity if importance else None, repeats=True)
            after = relabeler(trajectory, generator)
            changed += after is not trajectory
            world.reset(seed=after.world_seed, options={"instruction": after.instruction})
            steps = [world.step(action) for action in actions[: after.num_steps]]
            assert [step[1] for step in steps] == after.prev_reward[1:].tolist()
            assert [step[4]["progress"] for step in steps] == after.progress[1:].tolist()
            assert [step[2] for step in steps] == after.terminal[1:].tolist()
    assert changed > 10


@pytest.mark.parametrize("expanded", [False, True])
def test_hindsight_pays_what_the_real_world_pays(expanded):
    """Another instruction, the same world and actions: rewards as `amago.goals` says they are."""
    env = FollowInstructions(Crafter(expanded=expanded, horizon=250))
    generator = np.random.default_rng(0)
    audited = 0
    for seed in range(4):
        # Mostly walking and doing, so that things happen.
        actions = generator.choice([1, 2, 3, 4, 5, 5, 5, 6, 8, 10], 250)
        _, achieved = play(env, seed, actions, "collect diamond")
        happened = sorted({tuple(row) for rows in achieved for row in rows.tolist()})
        assert len(happened) > 3
        for _ in range(4):
            length = int(generator.integers(1, 6))
            asked = [happened[i] for i in generator.integers(0, len(happened), length)]
            offsets = np.cumsum([0, 0, *(len(rows) for rows in achieved)])
            progress = follow(
                np.array(asked, np.uint8), (offsets, np.concatenate(achieved))
            ).progress
            rewards, _ = play(env, seed, actions, SPEC.write(asked))
            expected = np.diff(progress).tolist()
            assert rewards == expected[: len(rewards)] and not any(expected[len(rewards) :])
            audited += sum(rewards) > 1
    assert audited > 4


def test_the_frontier_of_the_tech_tree_advances_and_instructions_stay_behind_it():
    env = Crafter(instructions="tech-tree")
    env.reset(seed=0)
    assert env.curriculum == -1
    world, player = env.game.world, env.game.player
    x, y = (int(value) for value in player.pos)
    world[x, y + 1] = "tree"
    env.step(ACTIONS.index("do"))
    assert env.curriculum == tech_tree().index(tuple(SPEC.read("collect wood")[0].tolist())) == 0
    world[x, y + 1] = "grass"
    player.inventory["wood"] = 3
    env.step(ACTIONS.index("place_table"))
    env.step(ACTIONS.index("make_wood_pickaxe"))
    assert env.curriculum == 2
    env.step(ACTIONS.index("noop"))

    def asked() -> list[str]:
        drawn = (env._asked(np.random.default_rng(seed))["instruction"] for seed in range(60))
        return [SPEC.write(instruction) for instruction in drawn]

    progression = "collect wood, place table, make wood pickaxe"
    assert progression not in asked()  # not before all lanes agree on it
    env.curriculum = env.curriculum
    assert asked().count(progression) >= 8 and env.curriculum == 2


def test_lanes_report_instruction_progress_and_what_was_achieved():
    vector = make_vector(EnvSettings(id="amago/Crafter-v0"), seed=0, num_lanes=2)
    rows = vector.reset()
    assert rows.instruction.shape == (2, 5, 3) and rows.progress.tolist() == [0, 0]
    game = vector._envs[0].unwrapped.game
    game.world.move(game.player, (31, 31))
    offsets, goals = vector.step(np.array([0, 0])).rows.achieved
    assert offsets.tolist() == [0, 1, 1] and SPEC.write(goals) == "travel to (30, 30)"
    assert vector.spec.goals == goal_spec(expanded=False)


def test_collecting_moves_the_frontier_of_all_lanes_at_its_end_and_playing_does_not():
    settings = EnvSettings(
        id="amago/Crafter-v0", kwargs={"instructions": "tech-tree", "horizon": 4}
    )
    task = settings.id
    vector = make_vector(settings, seed=0, num_lanes=2)
    noise = Exploration(
        ExplorationSettings(), vector.spec, num_lanes=2, anneal_steps=9, rollout_steps=4, seed=0
    )
    lanes = [env.unwrapped for env in vector._envs]
    lanes[1]._reached = 3
    collect(vector, RandomPolicy(vector.spec, 0), noise, 4, lambda finished: None)
    assert vector.curriculum == {task: 3} and [lane._frontier for lane in lanes] == [3, 3]
    played = make_lanes(settings, PlaySettings(episodes=2, curriculum=vector.curriculum))
    lanes = [env.unwrapped for env in played._envs]
    lanes[0]._reached = 7
    play_rollouts(RandomPolicy(played.spec, 0), played, 2)
    assert [lane._frontier for lane in lanes] == [3, 3] and vector.curriculum == {task: 3}
