"""Any space: from the environment through store and Batch to an update and an action."""

from __future__ import annotations

import math
import tempfile
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_agent_helpers import tiny_config

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.agent.update import Learner
from amago.envs.domains.masked_recall import MaskedRecall
from amago.envs.native import NativeVector
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.envs.vector import InProcessVector
from amago.nets.pixels import _random_shift
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore
from amago.rollout.collect import collect
from amago.rollout.exploration import Exploration
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.settings import ExplorationSettings
from amago.serving.predictor import Predictor
from amago.types import ACTION_MASK, ObsSpec

pytestmark = pytest.mark.usefixtures("no_curves")

INT = st.integers

leaf_spaces = st.one_of(
    st.builds(lambda n, s: spaces.Discrete(n, start=s), INT(1, 300), INT(-5, 5)),
    st.builds(lambda v: spaces.MultiDiscrete(v), st.lists(INT(1, 20), min_size=1, max_size=4)),
    st.builds(lambda v: spaces.MultiDiscrete(v), st.sampled_from([[[2, 9], [3, 4]], [[5]]])),
    st.just(spaces.MultiDiscrete([3, 4], start=[0, 10])),
    st.just(spaces.Box(np.float32([-1, 0]), np.float32([0, 50]))),
    st.builds(lambda n: spaces.MultiBinary(n), st.sampled_from([1, 3, (2, 2)])),
    st.builds(
        lambda s, d: spaces.Box(-2.0, 3.0, s, d),
        st.sampled_from([(), (1,), (2, 3)]), st.sampled_from([np.float32, np.float64]),
    ),
    st.builds(lambda s: spaces.Box(0, 255, s, np.uint8),
              st.sampled_from([(16, 17), (3, 18, 16), (16, 20, 1), (33, 16, 4), (5, 3), (6,)])),
    st.builds(lambda s: spaces.Box(0, 6, s, np.int64), st.sampled_from([(4, 4), (16, 16), (3,)])),
    st.builds(lambda n: spaces.Text(n, min_length=0), INT(1, 40)),
)  # fmt: skip
nested_spaces = st.recursive(
    leaf_spaces,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abcde"), inner, min_size=1, max_size=3).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: spaces.Tuple(parts)),
    ),
    max_leaves=4,
)
action_spaces = st.one_of(
    st.builds(lambda n, s: spaces.Discrete(n, start=s), INT(1, 7), INT(-3, 9)),
    st.builds(
        lambda v, s: spaces.MultiDiscrete(v, start=[s] * len(v)),
        st.lists(INT(1, 11), min_size=1, max_size=4), INT(-2, 2),
    ),
    st.just(spaces.MultiDiscrete([[2, 3], [4, 1]])),
    st.just(spaces.MultiDiscrete([3, 2], start=[-4, 10])),
    st.just(spaces.Box(np.float32([-1, 0]), np.float32([0, 50]))),
    st.builds(lambda n: spaces.MultiBinary(n), st.sampled_from([1, 4, (2, 3)])),
    st.builds(
        lambda low, width, shape, dtype: spaces.Box(low, low + width, shape, dtype),
        INT(-900, 900), INT(0, 10**6), st.sampled_from([(), (1,), (2, 2)]),
        st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
    ),
)  # fmt: skip


class AnyEnv(gym.Env[Any, Any]):
    """Random observations of any space; refuses every action that is not in its own, or that
    its last mask forbade."""

    def __init__(self, obs: gym.Space, action: gym.Space, masked: bool) -> None:
        self.action_space, self.masked = action, masked
        self.sizes = np.ravel(getattr(action, "nvec", getattr(action, "n", 0)))
        self.observation_space = obs
        if masked:
            mask = spaces.MultiBinary(int(self.sizes.sum()))
            self.observation_space = spaces.Dict({"inner": obs, ACTION_MASK: mask})
        self._template = obs

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._template.seed(seed)
        self.time = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        if self.masked:
            ids = np.ravel(action - self.action_space.start)
            starts = np.cumsum([0, *self.sizes[:-1]])
            for start, size, i in zip(starts, self.sizes, ids, strict=True):
                part = self.mask[start : start + size]
                assert part[i] or not part.any()
        self.time += 1
        reward = float(self.np_random.normal())
        return self._observe(), reward, self.time == 5, False, {}

    def _observe(self) -> Any:
        inner = self._template.sample()
        if not self.masked:
            return inner
        self.mask = (self.np_random.random(int(self.sizes.sum())) < 0.5).astype(np.int8)
        return {"inner": inner, ACTION_MASK: self.mask}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    nested_spaces, action_spaces, st.booleans(),
    st.sampled_from(["scalar", "two_hot", "hl_gauss"]), st.sampled_from(["small", "residual"]),
)  # fmt: skip
def test_any_space_goes_from_environment_to_update_and_back_to_an_action(
    obs, action, mask, critic, cnn
):
    mask = mask and isinstance(action, spaces.Discrete | spaces.MultiDiscrete)
    vector = InProcessVector(lambda: AnyEnv(obs, action, mask), 2, 0, horizon=5)
    config = tiny_config(heads__critic=critic, encoder__cnn=cnn)
    torch.manual_seed(0)
    learner = Learner(Agent(vector.spec, config), config.agent, config.optim)
    exploration = Exploration(
        ExplorationSettings(start=(0.5, 0.5), end=(0.5, 0.5)), vector.spec, num_lanes=2,
        anneal_steps=10, rollout_steps=5, seed=0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = TrajectoryStore(folder, vector.spec, 10, (0, 0))
        made = []

        def sink(trajectories):
            made.extend(trajectories)
            store.append(trajectories)

        collect(vector, AgentPolicy(learner.agent, seed=0), exploration, 5, sink)
        for number, trajectory in enumerate(made):
            stored = store.read(number)
            for key, array in trajectory.obs.items():
                assert array.dtype == vector.spec.obs[key].dtype
                assert np.array_equal(stored.obs[key], array), key
            assert np.array_equal(stored.prev_action, trajectory.prev_action)
        batch = Sampler(store, 3, 4, 0).batch(0)
        store.close()
    for key, spec in vector.spec.obs.items():
        assert batch.obs[key].shape[1:] == spec.shape
    before = [p.detach().clone() for p in learner.parameters]
    metrics = learner.step(batch)
    assert learner.skipped == 0 and math.isfinite(float(metrics["loss/total"]))
    assert any(not torch.equal(a, b) for a, b in zip(before, learner.parameters, strict=True))
    env = AnyEnv(obs, action, mask)
    predictor = Predictor(AgentPolicy(learner.agent, seed=1), env.observation_space, action)
    first, _ = env.reset(seed=0)
    chosen, _ = predictor.predict(first)
    env.step(chosen if isinstance(action, spaces.Discrete) else np.asarray(chosen, action.dtype))


@settings(max_examples=60, deadline=None)
@given(action_spaces, INT(0, 2**31))
def test_actions_of_the_space_survive_the_way_to_the_agent_and_back(space, seed):
    converter = ActionConverter(space)
    space.seed(seed)
    actions = np.stack([np.asarray(space.sample()) for _ in range(8)])
    agent = converter.from_env(actions)
    again = converter.to_env(agent.astype(converter.spec.stored_dtype))
    if np.dtype(space.dtype).kind == "f":
        span = float(np.max(space.high - space.low))
        np.testing.assert_allclose(again, actions, atol=1e-6 * max(span, 1) + 1e-4)
    elif isinstance(space, spaces.Box):
        span = float(np.max(space.high - space.low))  # float32 rows hold 24 bits
        np.testing.assert_allclose(again, actions, atol=max(0.0, span * 2.0**-22 - 0.5))
    else:
        assert np.array_equal(again, actions)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_the_widest_bounds_of_a_box_are_reached_without_overflow(dtype):
    info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    space = spaces.Box(info.min, info.max, (2,), dtype)
    converter = ActionConverter(space)
    low, middle, high = converter.to_envs(np.array([[-1, -1], [0, 0], [1, 1]], np.float32))
    assert low.tolist() == [info.min] * 2 and high.tolist() == [info.max] * 2
    assert all(space.contains(x) for x in (low, middle, high))


def masked_noise(vector, anneal_steps):
    return Exploration(
        ExplorationSettings(),
        vector.spec,
        num_lanes=vector.num_lanes,
        anneal_steps=anneal_steps,
        rollout_steps=16,
        seed=0,
    )


def test_random_play_and_its_noise_obey_masks_for_a_hundred_thousand_steps():
    task = MaskedRecall()
    vector = NativeVector(task, 500, 0)
    policy, noise = RandomPolicy(vector.spec, 0), masked_noise(vector, 200)
    rows, state = vector.reset(), policy.initial_state(500)
    explored = 0
    for _ in range(200):
        chosen, state = policy.act(rows, state)
        action = noise(rows, chosen, np.arange(500))
        explored += int((action != chosen).any(1).sum())
        rows = vector.step(action).rows
    assert int(task.disobeyed.sum()) == 0
    assert explored > 5_000  # noise was at work, and obeyed too


def test_no_masked_action_in_a_hundred_thousand_steps_of_training_with_exploration(tmp_path):
    """Collect and learn in turn, as a run does, on one masked environment."""
    task = MaskedRecall()
    vector = NativeVector(task, 500, 0)
    torch.manual_seed(0)
    config = tiny_config(memory="transformer")
    learner = Learner(Agent(vector.spec, config), config.agent, config.optim)
    noise = masked_noise(vector, 150)
    taken = 0
    with TrajectoryStore(tmp_path, vector.spec, 2000, (0, 0)) as store:
        for epoch in range(13):
            noise.begin(epoch)
            policy = AgentPolicy(learner.agent, seed=epoch)
            _, steps = collect(vector, policy, noise, 16, store.append)
            taken += steps
            for batch in Sampler(store, 8, 16, 0).batches(4 * epoch, 4 * epoch + 4):
                learner.step(batch)
    assert taken == 104_000 and learner.updates == 52 and learner.skipped == 0
    assert int(task.disobeyed.sum()) == 0


# Pixels


def frames(spec, count=6):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (count, *spec.shape), generator=generator).to(torch.uint8)


@pytest.mark.parametrize("shape", [(16, 16), (3, 20, 24), (20, 24, 3), (16, 16, 16), (1, 84, 84)])
@pytest.mark.parametrize("cnn", ["small", "residual"])
def test_trunks_take_every_layout_and_size(shape, cnn):
    from amago.nets.pixels import _IMAGE_FEATURES, ImageEncoder
    from amago.nets.settings import EncoderSettings

    spec = ObsSpec(shape, "uint8", "image")
    encoder = ImageEncoder(spec, EncoderSettings(cnn=cnn)).eval()
    assert encoder(frames(spec), torch.float32).shape == (6, _IMAGE_FEATURES)


def test_channels_first_and_last_of_one_image_give_one_encoding():
    from amago.nets.pixels import ImageEncoder
    from amago.nets.settings import EncoderSettings

    first, last = ObsSpec((3, 20, 24), "uint8", "image"), ObsSpec((20, 24, 3), "uint8", "image")
    one, other = (ImageEncoder(spec, EncoderSettings()).eval() for spec in (first, last))
    other.load_state_dict(one.state_dict())
    x = frames(first)
    torch.testing.assert_close(
        one(x, torch.float32), other(x.permute(0, 2, 3, 1).contiguous(), torch.float32)
    )


def test_a_random_shift_moves_whole_images_and_repeats_their_edges():
    torch.manual_seed(0)
    images = torch.arange(20 * 18).view(1, 1, 20, 18).expand(200, 2, -1, -1).clone() % 251
    images = images.to(torch.uint8)
    shifted = _random_shift(images, 2)
    seen = set()
    for image in shifted:
        matches = []
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                rows = [min(max(y + dy, 0), 19) for y in range(20)]
                columns = [min(max(x + dx, 0), 17) for x in range(18)]
                if torch.equal(image, images[0][:, rows][:, :, columns]):
                    matches.append((dy, dx))
        assert len(matches) == 1
        seen.update(matches)
    assert len(seen) == 25


def test_shifts_come_from_the_seed_and_happen_in_training_only():
    from amago.nets.pixels import ImageEncoder
    from amago.nets.settings import EncoderSettings

    spec = ObsSpec((32, 32, 3), "uint8", "image")
    encoder = ImageEncoder(spec, EncoderSettings(random_shift=4))
    assert encoder.reach == 2  # a sixteenth of the side at most
    x = frames(spec)

    def encode(seed):
        torch.manual_seed(seed)
        return encoder(x, torch.float32).detach()

    encoder.train()
    assert torch.equal(encode(1), encode(1)) and not torch.equal(encode(1), encode(2))
    encoder.eval()
    assert torch.equal(encode(1), encode(2))
    off = ImageEncoder(spec, EncoderSettings(random_shift=0)).train()
    off.load_state_dict(encoder.state_dict())
    assert torch.equal(off(x, torch.float32).detach(), encode(1))


def test_pixels_and_ids_bypass_the_normaliser():
    space = spaces.Dict(
        {
            "frame": spaces.Box(0, 255, (16, 16, 3), np.uint8),
            "grid": spaces.Box(0, 5, (16, 16), np.int64),
            "text": spaces.Text(30),
            "x": spaces.Box(-1, 1, (2,)),
        }
    )
    specs = ObsConverter(space).specs
    assert {key: spec.kind for key, spec in specs.items()} == {
        "frame": "image", "grid": "category", "text": "category", "x": "real",
    }  # fmt: skip
    vector = InProcessVector(lambda: AnyEnv(space, spaces.Discrete(2), False), 1, 0, horizon=5)
    encoder = Agent(vector.spec, tiny_config()).encoder
    assert encoder.normalizer.mean.shape == (3,)  # x and prev_reward
    assert encoder.routes == {"frame": "trunk", "grid": "trunk", "text": "embed", "x": "real"}
