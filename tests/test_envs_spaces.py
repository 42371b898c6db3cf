"""Spaces become specs, and values survive the way in and out."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from counting_env import CountingEnv
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from amago.envs.spaces import ActionConverter, ObsConverter
from amago.envs.vector import InProcessVector
from amago.types import ObsSpec

NESTED = spaces.Dict(
    {
        "position": spaces.Dict({"x": spaces.Box(-np.inf, np.inf, (2,), np.float64)}),
        "pair": spaces.Tuple((spaces.Discrete(3, start=-1), spaces.MultiBinary((2, 2)))),
        "pixels": spaces.Box(0, 255, (4, 4, 3), np.uint8),
        "action_mask": spaces.Box(0, 1, (5,), np.int8),
    }
)


def test_nested_spaces_become_flat_specs_with_joined_keys():
    assert ObsConverter(NESTED).specs == {
        "action_mask": ObsSpec((5,), "bool", "mask"),
        "pair/0": ObsSpec((), "uint8", "category", 3),
        "pair/1": ObsSpec((2, 2), "bool", "mask"),
        "pixels": ObsSpec((4, 4, 3), "uint8", "real"),
        "position/x": ObsSpec((2,), "float32", "real"),
    }


def test_a_bare_space_is_called_observation_and_tuples_count():
    assert set(ObsConverter(spaces.Box(0, 1)).specs) == {"observation"}
    pair = spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1)))
    assert set(ObsConverter(pair).specs) == {"0", "1"}


@pytest.mark.parametrize(("size", "dtype"), [(1, "uint8"), (256, "uint8"), (257, "uint16")])
def test_categories_are_stored_as_the_smallest_unsigned_integer(size, dtype):
    assert ObsConverter(spaces.Discrete(size)).specs["observation"].dtype == dtype


def test_stacked_and_batched_conversion_agree_and_match_the_specs():
    converter = ObsConverter(NESTED)
    NESTED.seed(0)
    samples = [NESTED.sample() for _ in range(6)]
    batched = gym.vector.utils.concatenate(
        NESTED, samples, gym.vector.utils.create_empty_array(NESTED, 6)
    )
    stacked, batch = converter.stack(samples), converter.batch(batched)
    for key, spec in converter.specs.items():
        assert stacked[key].shape == (6, *spec.shape) and stacked[key].dtype == spec.dtype
        assert np.array_equal(stacked[key], batch[key])
    assert stacked["pair/0"].tolist() == [sample["pair"][0] + 1 for sample in samples]
    assert np.allclose(stacked["position/x"][3], samples[3]["position"]["x"])


def test_converted_arrays_share_no_memory_with_the_environment():
    space = spaces.Box(0, 1, (2,), np.float32)
    source = np.zeros((3, 2), np.float32)
    assert not np.shares_memory(ObsConverter(space).batch(source)["observation"], source)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Graph(spaces.Box(0, 1), None),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Dict({"action_mask": spaces.Discrete(2)}),
    ],
)
def test_unsupported_observations_are_refused_with_a_remedy(space):
    with pytest.raises(ValueError, match=r"expected Box, Discrete, Multi.*got.*wrap"):
        ObsConverter(space)


def test_keys_that_collide_and_empty_observations_are_refused():
    box = spaces.Box(0, 1)
    with pytest.raises(ValueError, match="'a/b'"):
        ObsConverter(spaces.Dict({"a": spaces.Dict({"b": box}), "a/b": box}))
    with pytest.raises(ValueError, match="at least one array"):
        ObsConverter(spaces.Dict({}))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Dict({"a": spaces.Discrete(2)}),
        spaces.Box(-np.inf, 1.0, (2,)),
        spaces.Box(0, 1, (0,)),
    ],
)
def test_unsupported_actions_are_refused_with_a_remedy(space):
    with pytest.raises(ValueError, match=r"expected a .*got .*gymnasium\.wrappers"):
        ActionConverter(space)


def test_discrete_actions_start_where_the_space_does():
    converter = ActionConverter(spaces.Discrete(3, start=5))
    actions = converter.to_envs(converter.executed(np.array([0, 2]), 2))
    assert actions == [5, 7] and all(converter.space.contains(action) for action in actions)


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(st.integers(-9, 9), st.integers(0, 9)),
    st.sampled_from([(), (1,), (2, 3)]),
    st.sampled_from(["float32", "float64", "int32"]),
    st.lists(st.floats(-3, 3, width=32), min_size=6, max_size=6),
)
def test_box_actions_fill_their_bounds_and_never_leave_them(bounds, shape, dtype, numbers):
    low, high = bounds[0], bounds[0] + bounds[1]
    space = spaces.Box(low, high, shape, np.dtype(dtype))
    converter = ActionConverter(space)
    values = np.array(numbers[: converter.spec.size], np.float32)
    rows = np.stack([values, -np.ones_like(values), np.ones_like(values)])
    env_actions = converter.to_envs(converter.executed(rows, 3))
    assert all(space.contains(action) for action in env_actions)
    assert np.array_equal(env_actions[1], space.low) and np.array_equal(env_actions[2], space.high)
    if dtype != "int32":
        want = low + (np.clip(values, -1, 1) + 1) / 2 * (high - low)
        assert np.allclose(env_actions[0].ravel(), want, atol=1e-5)


def masked(action_space: gym.Space, mask_space: gym.Space) -> CountingEnv:
    env = CountingEnv()
    env.action_space = action_space
    env.observation_space = spaces.Dict({"action_mask": mask_space})
    return env


def test_action_masks_must_fit_the_actions():
    box, two = spaces.Box(-1, 1, (2,)), spaces.MultiBinary(2)
    with pytest.raises(
        ValueError, match="needs a Discrete or MultiDiscrete action space, got a Box"
    ):
        InProcessVector(lambda: masked(box, two), 1, 0)
    with pytest.raises(ValueError, match=r"shape \[3\], one flag per action, got \[2\]"):
        InProcessVector(lambda: masked(spaces.Discrete(3), two), 1, 0)
