"""Instructions in Timesteps, whichever vector holds the lanes, and in users' own environments."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_goals_helpers import Scripted, Wanderer, play, record_script, scripted_env
from test_replay_helpers import same

import amago
from amago.envs.instructions import FollowInstructions
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.trials import Trials
from amago.envs.vector import GymVector, InProcessVector, WorkerVector
from amago.goals import GoalSpec
from amago.replay.relabel import Relabeler
from amago.replay.settings import RelabelSettings
from amago.rollout.recorder import Recorder
from amago.types import Step, Timestep, Trajectory, VectorEnv

ROOT = Path(amago.__file__).parents[1]
LANES, SEED = 3, 9
RUNNER = EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 7, "horizon": 40})
LETTERS = GoalSpec(3, 1, "token", vocabulary=("", "a", "b", "c"))
make_runner = partial(gym.make, RUNNER.id, **RUNNER.kwargs)


def native() -> VectorEnv:
    return make_vector(RUNNER, seed=SEED, num_lanes=LANES)


def in_process(first_lane: int = 0, num_lanes: int = LANES) -> InProcessVector:
    return InProcessVector(make_runner, num_lanes, SEED, first_lane=first_lane, name=RUNNER.id)


def gym_vector(mode: AutoresetMode) -> GymVector:
    env = SyncVectorEnv([make_runner] * LANES, autoreset_mode=mode)
    return GymVector(env, SEED, name=RUNNER.id, horizon=40, goals=make_runner().unwrapped.goals)


VECTORS = {
    "in process": in_process,
    "workers": lambda: WorkerVector(in_process, LANES, 2),
    "native workers": lambda: make_vector(
        EnvSettings(id=RUNNER.id, kwargs=RUNNER.kwargs, num_workers=2),
        seed=SEED,
        num_lanes=LANES,
    ),
    "gym, reset disabled": lambda: gym_vector(AutoresetMode.DISABLED),
}


def trajectories(vector: VectorEnv, calls: int = 250) -> list[list[Trajectory]]:
    """The finished rollouts of each lane when every vector gets the same actions at same times."""
    recorder = Recorder(vector.spec, tuple(map(str, range(vector.num_lanes))))
    scripts = [np.random.default_rng(lane).integers(0, 4, 10_000) for lane in range(LANES)]
    taken = np.zeros(LANES, np.int64)
    rows = vector.reset()
    finished = recorder.add(Step(rows))
    for _ in range(calls):
        chosen = np.array([scripts[lane][taken[lane]] for lane in range(LANES)])
        taken += ~rows.last  # a lane that is about to be reset ignores its action
        step = vector.step(chosen)
        rows = step.rows
        finished += recorder.add(step)
    vector.close()
    return [[t for t in finished if t.task == str(lane)] for lane in range(LANES)]


@pytest.fixture(scope="module")
def expected() -> list[list[Trajectory]]:
    return trajectories(native())


@pytest.mark.parametrize("kind", VECTORS)
def test_every_vector_emits_the_same_instructions_progress_and_goals(kind, expected):
    vector = VECTORS[kind]()
    assert vector.spec == native().spec and vector.spec.goals.max_goals == 3
    received = trajectories(vector)
    assert [len(lane) for lane in received] == [len(lane) for lane in expected]
    for lane in range(LANES):
        assert all(map(same, received[lane], expected[lane]))
    assert sum(len(lane) for lane in expected) >= 9
    assert sum(t.progress[-1] for lane in expected for t in lane) > 0


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_self_resetting_gym_vectors_keep_the_goals_of_each_rollout_apart(mode, expected):
    # Only the first world of a lane is seeded; the later ones are the vector's own.
    received = trajectories(gym_vector(mode))
    spec = native().spec.goals
    for lane in range(LANES):
        assert same(received[lane][0], expected[lane][0]) and len(received[lane]) >= 3
        for trajectory in received[lane]:
            assert trajectory.progress[0] == 0 and trajectory.achieved[0][1] == 0
            assert (np.diff(trajectory.progress) == trajectory.prev_reward[1:]).all()
            asked = trajectory.instruction
            assert 1 <= len(asked) <= 3 and (spec.goals(asked) == asked).all()
            end = trajectory.progress[-1] == len(asked) or trajectory.num_steps == 40
            assert end and trajectory.terminal[-1] and not trajectory.terminal[:-1].any()
    assert len({t.instruction.tobytes() for t in received[0]}) > 1


def test_recorded_goals_are_those_that_timesteps_carry():
    vector = native()
    recorder = Recorder(vector.spec, vector.tasks)
    policy, rows = Wanderer(vector.spec, 0), vector.reset()
    recorder.add(Step(rows))
    seen: list[list[tuple[int, list[Any]]]] = [[(0, [])] for _ in range(LANES)]
    compared = 0
    for _ in range(200):
        step = vector.step(policy.act(rows, None)[0])
        finished = recorder.add(step)
        for at, lane in enumerate(step.final_lanes.tolist()):
            seen[lane].append(_goals_of(step.final, at))
        for trajectory, lane in zip(finished, step.final_lanes.tolist(), strict=True):
            offsets, goals = trajectory.achieved
            assert offsets.dtype == np.uint8 and goals.dtype == np.uint8
            got = [
                (int(p), goals[a:b].tolist())
                for p, a, b in zip(trajectory.progress, offsets[:-1], offsets[1:], strict=True)
            ]
            assert got == seen[lane]
            compared += len(goals)
            seen[lane] = []
        for lane in range(LANES):
            seen[lane].append(_goals_of(step.rows, lane))
        rows = step.rows
    assert compared > 5


def _goals_of(rows: Timestep, at: int) -> tuple[int, list[Any]]:
    offsets, goals = rows.achieved
    return int(rows.progress[at]), goals[offsets[at] : offsets[at + 1]].tolist()


def test_selecting_lanes_selects_their_instructions_and_goals():
    vector = native()
    rows, policy = vector.reset(), Wanderer(vector.spec, 3)
    while len(rows.achieved[1]) < 2 or not rows.progress.any():
        rows = vector.step(policy.act(rows, None)[0]).rows
    for lanes in (np.array([2, 0]), np.array([True, False, True])):
        chosen = rows.select(lanes)
        for at, lane in enumerate(np.arange(LANES)[lanes]):
            assert _goals_of(chosen, at) == _goals_of(rows, lane)
            assert np.array_equal(chosen.instruction[at], rows.instruction[lane])
            assert chosen.num_goals[at] == rows.num_goals[lane]
    plain = make_vector(EnvSettings(id="amago/Wind-v0"), seed=0, num_lanes=2).reset()
    assert all(
        getattr(plain.select(np.array([1])), f.name) is None
        for f in fields(Timestep)
        if f.name in ("instruction", "num_goals", "progress", "achieved")
    )


def test_a_plain_environment_is_paid_by_the_rule_and_not_by_itself():
    script = ["a", ["a"], [["b"]], "b, a", "", "c, b, c", "c", "a"]
    script = [LETTERS.read(x).tolist() if isinstance(x, str) and x else [] for x in script]
    script[1], script[2] = [[1]], [[2]]
    trajectory = record_script(LETTERS, script, "a, b, c")
    assert trajectory.prev_reward.tolist() == [0, 1, 1, 0, 0, 1]  # never the 7 of the script
    assert trajectory.progress.tolist() == [0, 1, 2, 2, 2, 3]
    assert trajectory.terminal.tolist() == [False] * 5 + [True] and trajectory.num_steps == 5
    offsets, goals = trajectory.achieved
    # Row 0 is a reset and achieves nothing, whatever it says; "c, b, c" is two goals.
    assert offsets.tolist() == [0, 0, 1, 2, 4, 4, 6] and goals[:, 0].tolist() == [1, 2, 1, 2, 2, 3]
    assert LETTERS.write(trajectory.instruction) == "a, b, c"


def test_an_unfinished_instruction_ends_as_the_environment_ends():
    trajectory = record_script(LETTERS, [[], [[1]], [], [[1]]], [[1], [2]])
    assert trajectory.progress.tolist() == [0, 1, 1, 1] and trajectory.terminal[-1]
    env = scripted_env(LETTERS, [[], [[1]], [[2]], []], "a, b")
    env.reset(options={"instruction": "b"})
    outcomes = [env.step(0)[1:3] for _ in range(2)]
    assert outcomes == [(0.0, False), (1.0, True)]
    _, info = env.reset()
    assert info["instruction"] == [[1], [2]] and info["progress"] == 0 and info["achieved"] == []


def test_an_environment_is_wrapped_once_and_only_where_it_has_goals():
    wrapped = scripted_env(LETTERS, [[], []], "a")
    lanes = InProcessVector(lambda: wrapped, 1, 0)
    assert lanes._envs[0] is wrapped
    assert InProcessVector(lambda: gym.make("CartPole-v1"), 1, 0).spec.goals is None
    assert type(lanes._envs[0]) is FollowInstructions


def test_mistakes_of_a_goal_environment_say_what_to_do():
    with pytest.raises(ValueError, match=r"info\['instruction'\] from reset\(\)"):
        InProcessVector(lambda: Scripted(LETTERS, [[], []], None), 1, 0).reset()
    with pytest.raises(ValueError, match="attribute `goals`"):
        FollowInstructions(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="one in a rollout"):
        Trials(make_runner(), trials=2)
    with pytest.raises(ValueError, match="one in a rollout"):
        make_vector(EnvSettings(id=RUNNER.id, trials=2), seed=0, num_lanes=1)
    with pytest.raises(ValueError, match="DarkKeyToDoor follows no instructions"):
        gym.make("amago/DarkKeyToDoor-v0").reset(options={"instruction": "1"})
    env = scripted_env(LETTERS, [[], [[9]], []], "a")
    env.reset()
    with pytest.raises(ValueError, match="whole numbers in"):
        env.step(0)
    bare = GymVector(
        SyncVectorEnv([lambda: Scripted(LETTERS, [[], [], []], "a")]), 0, goals=LETTERS
    )
    bare.reset()
    with pytest.raises(ValueError, match=r"expected info\['progress'\].*FollowInstructions"):
        bare.step(np.zeros(1, np.int64))


def _lights() -> ast.ClassDef:
    tree = ast.parse((ROOT / "examples" / "custom_goals.py").read_text())
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Lights")


def test_the_documented_goal_domain_is_the_example_and_needs_few_lines():
    text = (ROOT / "docs" / "instructions.md").read_text()
    block = next(part for part in text.split("```python")[1:] if "class Lights" in part)
    documented = next(
        node for node in ast.parse(block.split("```")[0]).body if isinstance(node, ast.ClassDef)
    )
    example = _lights()
    for node in ast.walk(example):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in [*node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
    example.bases = [ast.parse("gym.Env").body[0].value]
    assert ast.unparse(documented) == ast.unparse(example)
    assert len(ast.unparse(example).splitlines()) <= 40


def test_the_example_domain_collects_relabels_and_replays(capsys):
    spec = importlib.util.spec_from_file_location("goals", ROOT / "examples" / "custom_goals.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.show_relabeling()
    assert "in hindsight" in capsys.readouterr().out
    lanes = make_vector(EnvSettings(), seed=1, num_lanes=8, make_env=module.Lights)
    recorder, policy, rows = (
        Recorder(lanes.spec, lanes.tasks),
        Wanderer(lanes.spec, 0),
        lanes.reset(),
    )
    recorder.add(Step(rows))
    finished = []
    while len(finished) < 40:
        step = lanes.step(policy.act(rows, None)[0])
        finished += recorder.add(step)
        rows = step.rows
    relabeler = Relabeler(RelabelSettings(importance_sampling=False), None, repeats=True)
    rng = np.random.default_rng(0)
    several = 0
    for trajectory in finished:
        after = relabeler(trajectory, rng)
        played = play(FollowInstructions(module.Lights()), after)
        for name in ("prev_reward", "terminal", "progress", "obs"):
            assert same(getattr(played, name), getattr(after, name)), name
        several += bool((np.diff(after.achieved[0]) == 2).any())
    assert several > 20
