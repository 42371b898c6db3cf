"""From settings to the right kind of lanes, with errors that help."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counting_env import CountingEnv

from amago.envs.in_process import InProcessVector
from amago.envs.native import NativeVector
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings


def make(**settings):
    return make_vector(EnvSettings(**settings), seed=0, num_lanes=2)


def test_amagos_tasks_are_native_unless_trials_ask_for_the_wrapper():
    assert isinstance(make(id="amago/TMaze-v0"), NativeVector)
    assert isinstance(make(id="amago/TMaze-v0", trials=2), InProcessVector)
    assert isinstance(make(id="amago/Wind-v0", horizon=150), InProcessVector)
    assert isinstance(make(id="CartPole-v1"), InProcessVector)


def test_the_horizon_of_dark_key_to_door_stays_native_and_keeps_the_world():
    vector = make(id="amago/DarkKeyToDoor-v0", horizon=60)
    assert isinstance(vector, NativeVector) and vector.spec.horizon == 60


@pytest.mark.parametrize(
    ("settings", "horizon"),
    [
        ({"id": "CartPole-v1"}, 500),
        ({"id": "CartPole-v1", "horizon": 40}, 40),
        ({"id": "CartPole-v1", "trials": 3}, 1500),
        ({"id": "amago/TMaze-v0"}, 101),
        ({"id": "amago/ActiveTMaze-v0", "kwargs": {"corridor": 7}}, 10),
        ({"id": "amago/Wind-v0"}, 75),
        ({"id": "amago/Wind-v0", "trials": 2}, 150),
    ],
)
def test_the_spec_knows_the_horizon(settings, horizon):
    vector = make(**settings)
    assert vector.spec.horizon == horizon and vector.spec.name == settings["id"]
    assert vector.tasks == (settings["id"],) * 2


def test_a_plain_environment_with_a_horizon_is_played_in_trials_until_it_is_met():
    vector = make(id="CartPole-v1", horizon=60)
    rows = [vector.reset()] + [vector.step(np.zeros(2, int)).rows for _ in range(59)]
    assert sum(row.first.sum() for row in rows) > 8
    step = vector.step(np.zeros(2, int))
    assert step.final is not None and step.final.terminal.all()
    assert step.final.time.tolist() == [60, 60]


def test_truncation_is_not_terminal_and_termination_is():
    vector = make_vector(
        EnvSettings(), seed=0, num_lanes=2,
        make_env=lambda: gym.make("CartPole-v1", max_episode_steps=3),
    )  # fmt: skip
    vector.reset()
    steps = [vector.step(np.array([0, 1])) for _ in range(3)]
    assert steps[-1].final is not None
    assert steps[-1].final.last.all() and not steps[-1].final.terminal.any()
    vector = make(id="CartPole-v1")
    vector.reset()
    finals = [vector.step(np.array([0, 0])).final for _ in range(30)]
    assert all(final.terminal.all() for final in finals if final is not None) and any(finals)


def test_an_unknown_id_lists_close_matches_and_the_module_hint():
    with pytest.raises(ValueError, match=r"'CartPol-v1'.*CartPole-v1.*module:Name-v0"):
        make(id="CartPol-v1")
    with pytest.raises(ValueError, match=r"amago/TMaze-v0"):
        make(id="amago/Tmaze-v0")
    with pytest.raises(ValueError, match=r"CartPole-v1"):
        make(id="CartPole-v99")


def test_a_module_that_cannot_be_imported_is_named():
    with pytest.raises(ValueError, match="no_such_package"):
        make(id="no_such_package:Thing-v0")


def test_an_id_with_a_module_imports_it():
    assert make(id="gymnasium:CartPole-v1").spec.horizon == 500


class WrappedAtHome(gym.Wrapper):
    def __init__(self):
        super().__init__(CountingEnv())


def test_a_wrapper_class_may_be_registered():
    gym.register("WrappedAtHome-v0", WrappedAtHome)
    try:
        assert make(id="WrappedAtHome-v0").reset() is not None
    finally:
        del gym.registry["WrappedAtHome-v0"]


@pytest.mark.parametrize("trials", [None, 2])
def test_unknown_arguments_name_the_accepted_ones(trials):
    with pytest.raises(ValueError, match="'coridor'; it accepts corridor"):
        make(id="amago/ActiveTMaze-v0", kwargs={"coridor": 3}, trials=trials)
    with pytest.raises(ValueError, match="'speed'; it accepts sutton_barto_reward"):
        make(id="CartPole-v1", kwargs={"speed": 3}, trials=trials)


def test_make_env_must_make_a_gymnasium_environment():
    for bad, message in (
        (lambda: object(), "got object"),
        (CountingEnv(), "wrap it"),
        (lambda: gym.make_vec("CartPole-v1", num_envs=2), "GymVector"),
    ):
        with pytest.raises(ValueError, match=message):
            make_vector(EnvSettings(), seed=0, num_lanes=1, make_env=bad)


def test_lanes_must_agree_on_their_spaces():
    ids = iter(["CartPole-v1", "Acrobot-v1"])
    with pytest.raises(ValueError, match="every lane"):
        make_vector(EnvSettings(), seed=0, num_lanes=2, make_env=lambda: gym.make(next(ids)))


@pytest.mark.parametrize(("seed", "num_lanes"), [(-1, 2), (0, 0)])
def test_negative_seeds_and_zero_lanes_are_refused(seed, num_lanes):
    with pytest.raises(ValueError, match="expected"):
        make_vector(EnvSettings(), seed=seed, num_lanes=num_lanes)


def test_rendering_without_a_render_mode_says_what_to_do():
    vector = make_vector(EnvSettings(), seed=0, num_lanes=1, make_env=CountingEnv)
    vector.reset()
    with pytest.raises((ValueError, NotImplementedError)):
        vector.render()


def test_lanes_of_a_known_id_render():
    vector = make(id="amago/Wind-v0", trials=2)
    vector.reset()
    assert vector.render().shape == (240, 240, 3)
