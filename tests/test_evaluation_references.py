"""References are of the very worlds that were played: nobody earns more than the oracle there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from amago.envs.native import NativeVector
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.evaluate import evaluate
from amago.evaluation.play import PlaySettings, make_lanes, play
from amago.evaluation.references import oracle_records
from amago.rollout.random_policy import RandomPolicy
from amago.types import Array, Policy, Timestep, VectorEnv

ROOM = EnvSettings(id="amago/DarkKeyToDoor-v0", kwargs={"grid": 5, "horizon": 60})
ROAD = EnvSettings(id="amago/PackageDelivery-v0")
MAZE = EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 9})
CORRIDOR = EnvSettings(id="amago/TMaze-v0", kwargs={"corridor": 19})


class ShortestPaths:
    """Knows where key and door lie, and walks there; rests in some steps."""

    def __init__(self, env: VectorEnv, rest: float = 0.0) -> None:
        assert isinstance(env, NativeVector)
        self.task: Any = env.task
        self.rest, self.rng = rest, np.random.default_rng(0)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Timestep, state: None) -> tuple[Array, None]:
        task = self.task
        target = np.where(task.has_key[:, None], task.door, task.key)
        dx, dy = (target - task.position).T
        walk = np.select([dx < 0, dx > 0, dy > 0, dy < 0], [0, 2, 1, 3], default=4)
        return np.where(self.rng.random(len(walk)) < self.rest, 4, walk), None


@pytest.mark.parametrize("rest", [0.0, 0.3])
def test_nobody_earns_more_than_the_oracle_in_any_world(rest: float) -> None:
    env = make_lanes(ROOM, PlaySettings(50, num_lanes=16, world_seed=3))
    records = play(ShortestPaths(env, rest), env, 50)
    oracle = oracle_records(ROOM, records)
    assert oracle is not None
    assert [r.world_seed for r in oracle] == [r.world_seed for r in records]
    assert len({r.world_seed for r in records}) == 50
    for ours, best in zip(records, oracle, strict=True):
        assert ours.total <= best.total
        if rest == 0.0:
            assert ours.blocks is not None and best.blocks is not None
            assert ours.blocks.tolist() == best.blocks.tolist()
            assert (ours.length, ours.success) == (best.length, best.success)


def test_every_player_of_an_evaluation_meets_the_worlds_of_the_first() -> None:
    env = make_lanes(ROOM, PlaySettings(20, num_lanes=6, world_seed=1))
    met: dict[str, set[int]] = {"first": set(), "second": set()}

    class Noting(RandomPolicy):
        def __init__(self, name: str) -> None:
            super().__init__(env.spec, 0)
            self.name = name

        def act(self, timestep: Timestep, state: None) -> tuple[Array, None]:
            met[self.name] |= set(timestep.world_seed.tolist())
            return super().act(timestep, state)

    result = evaluate(Noting("first"), env, 20, env=ROOM, controls={"second": Noting("second")})
    assert met["first"] == met["second"] and len(met["first"]) >= 20
    assert result["second_return_mean"] == result["return_mean"]
    assert set(result["references"]) == set(result["reference_scores"]) == {"second", "oracle"}


def test_the_oracle_of_an_evaluation_is_the_mean_over_its_worlds() -> None:
    env = make_lanes(ROOM, PlaySettings(8, num_lanes=8))
    result = evaluate(ShortestPaths(env), env, 8, env=ROOM)
    assert result["references"]["oracle"] == result["return_per_block"]
    scores = result["reference_scores"]["oracle"]
    for name in ("return_mean", "return_std", "success_rate", "length_mean"):
        assert scores[name] == result[name]
    other = make_lanes(ROOM, PlaySettings(8, num_lanes=8, world_seed=1))
    moved = evaluate(ShortestPaths(other), other, 8, env=ROOM)
    assert moved["references"] != result["references"], "the oracle must follow the worlds"


def _oracle(env: EnvSettings, episodes: int = 100) -> tuple[dict[str, Any], list[float]]:
    lanes = make_vector(env, seed=0, num_lanes=20)
    result = evaluate(RandomPolicy(lanes.spec, 0), lanes, episodes, env=env)
    scores = result["reference_scores"]["oracle"]
    known = {name: scores[name] for name in ("return_mean", "success_rate", "length_mean")}
    return known, result["references"]["oracle"]


def test_the_oracle_of_package_delivery_walks_the_road_once() -> None:
    scores, blocks = _oracle(ROAD)
    assert scores["success_rate"] == 1.0 and scores["return_mean"] == pytest.approx(3, abs=0.2)
    assert sum(blocks) == pytest.approx(scores["return_mean"]) and len(blocks) == 10
    # The last of k places of 30, and a step for every drop, fits in two tenths of 180 steps.
    assert 20 < scores["length_mean"] < 30 and sum(blocks[2:]) == 0
    short, _ = _oracle(EnvSettings(id=ROAD.id, horizon=10))
    assert short["success_rate"] < 0.2 and short["length_mean"] <= 10


def test_the_oracle_of_a_maze_takes_the_shortest_ways() -> None:
    scores, blocks = _oracle(MAZE)
    assert scores["success_rate"] == 1.0 and scores["return_mean"] == pytest.approx(2, abs=0.2)
    assert sum(blocks) == pytest.approx(scores["return_mean"])
    assert 8 < scores["length_mean"] < 40


def test_the_oracle_of_the_t_maze_is_paid_in_the_last_tenth() -> None:
    scores, blocks = _oracle(CORRIDOR, 20)
    assert blocks == [0.0] * 9 + [1.0]
    assert scores == {"return_mean": 1.0, "success_rate": 1.0, "length_mean": 20.0}


@pytest.mark.parametrize(
    "env",
    [
        EnvSettings(id="amago/Wind-v0"),
        EnvSettings(id="CartPole-v1"),
        EnvSettings(id=CORRIDOR.id, kwargs=CORRIDOR.kwargs, trials=2),
        EnvSettings(id=ROOM.id, kwargs=ROOM.kwargs, horizon=50, horizon_is_terminal=False),
        EnvSettings(ids=("amago/TMaze-v0?corridor=3", "amago/TMaze-v0?corridor=4")),
    ],
)
def test_no_oracle_is_invented_where_none_is_known(env: EnvSettings) -> None:
    lanes = make_vector(env, seed=0, num_lanes=2)
    records = play(RandomPolicy(lanes.spec, 0), lanes, 2)
    lanes.close()
    assert oracle_records(env, records) is None


def test_an_oracle_of_other_instructions_is_not_shown() -> None:
    lanes = make_vector(MAZE, seed=0, num_lanes=1)
    goal = lanes.spec.goals.write(lanes.reset().instruction[0, :1])  # type: ignore[union-attr,index]
    settings = PlaySettings(1, instruction=goal)
    asked = make_lanes(MAZE, settings)
    policy: Policy = RandomPolicy(asked.spec, 0)
    assert not evaluate(policy, asked, 1, env=settings.env(MAZE))["references"]
