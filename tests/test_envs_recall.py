"""The recall tasks: what they show, what they pay, and that only memory can answer."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from amago.envs.domains.bit_recall import BitRecall
from amago.envs.domains.masked_recall import MaskedRecall
from amago.envs.domains.pixel_recall import _COLOURS, PixelRecall
from amago.envs.native import NativeVector
from amago.rollout.random_policy import RandomPolicy

RECALL = ("amago/MaskedRecall-v0", "amago/BitRecall-v0", "amago/PixelRecall-v0")


def play(task, choose, lanes=32, seed=0):
    """Return, success and number of steps of one rollout per lane."""
    vector = NativeVector(task, lanes, seed)
    rows, total = vector.reset(), np.zeros(lanes)
    for t in range(task.horizon):
        step = vector.step(choose(t, rows))
        rows = step.rows
        total += (step.final or rows).prev_reward
        assert (step.final is not None) == (t == task.horizon - 1)
    return total, step.final.success


def test_a_player_with_a_notebook_solves_masked_recall_and_is_never_forbidden_to():
    task, notes = MaskedRecall(length=3, delay=2, rounds=2), []

    def choose(t, rows):
        shown, asked = rows.obs["shown"].astype(int), rows.obs["asked"][:, 0]
        if shown.any():
            assert (shown > 0).all() and not asked.any()
            notes.append(shown - 1)
        if asked.any():
            return notes.pop(0)
        mask = rows.obs["action_mask"]
        return np.stack([mask[:, :5].argmax(1), mask[:, 5:].argmax(1)], 1)

    total, success = play(task, choose)
    assert total == pytest.approx(np.ones(32)) and success.all()
    assert not task.disobeyed.any()


def test_masked_recall_counts_forbidden_actions_and_always_allows_something():
    task = MaskedRecall()
    policy = None

    def choose(t, rows):
        nonlocal policy
        policy = policy or RandomPolicy(vector_spec, 0)
        mask = rows.obs["action_mask"]
        assert mask[:, :5].any(1).all() and mask[:, 5:].any(1).all() and not mask.all()
        return policy.act(rows, None)[0]

    vector_spec = NativeVector(MaskedRecall(), 1, 0).spec
    total, _ = play(task, choose, 200)
    assert not task.disobeyed.any() and 0.2 < total.mean() < 0.6
    vector = NativeVector(task, 200, 0)
    mask = vector.reset().obs["action_mask"]
    forbidden = np.stack([(~mask[:, :5]).argmax(1), mask[:, 5:].argmax(1)], 1)
    vector.step(forbidden)
    assert task.disobeyed.tolist() == (~mask[:, :5]).any(1).astype(int).tolist()


def test_bit_recall_pays_for_bits_beyond_guessing():
    task, notes = BitRecall(bits=5, delay=2, rounds=3), {}

    def choose(t, rows):
        obs = rows.obs["observation"]
        if obs[0, 5]:
            notes["bits"] = obs[:, :5].astype(int)
        assert obs[0, 5] or not obs[:, :5].any()
        return notes["bits"]

    total, success = play(task, choose)
    assert total == pytest.approx(np.ones(32)) and success.all()
    total, success = play(task, lambda t, rows: 1 - choose(t, rows))
    assert total == pytest.approx(-np.ones(32)) and not success.any()
    rng = np.random.default_rng(0)
    total, _ = play(task, lambda t, rows: rng.integers(2, size=(400, 5)), 400)
    assert abs(total.mean()) < 0.05


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("opposite", [False, True])
def test_pixel_recall_can_be_read_from_its_frames(shuffled, opposite):
    task, notes = PixelRecall(20, delay=2, rounds=3, shuffled=shuffled, opposite=opposite), {}

    def colour_at(patch):
        return (patch == _COLOURS[:, None, None, None]).all(-1).any((-1, -2)).argmax(0)

    def choose(t, rows):
        frames = rows.obs["observation"]
        step = t % task.round_steps
        found = (frames[None] == _COLOURS[:, None, None, None]).all(-1).any((-1, -2))  # [4, N]
        assert found.sum(0).tolist() == [{0: 1, 3: 4}.get(step, 0)] * 32
        if step == 0:
            notes["colour"] = found.argmax(0)
        corners = (frames[:, :1, :1], frames[:, :1, -1:], frames[:, -1:, :1], frames[:, -1:, -1:])
        seen = np.stack([colour_at(patch[None]) for patch in corners], 1)
        answer = (seen == notes["colour"][:, None]).argmax(1)
        bright = np.median(frames, axis=(1, 2, 3)) > 50
        assert (bright == opposite).all()
        return np.where(bright, 3 - answer, answer)

    total, success = play(task, choose)
    assert total == pytest.approx(np.ones(32)) and success.all()
    rng = np.random.default_rng(0)
    total, _ = play(task, lambda t, rows: rng.integers(4, size=400), 400)
    assert total.mean() == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize("task_id", RECALL)
def test_frames_are_legible_and_change_from_cue_to_blank(task_id):
    env = gym.make(f"amago.envs.registry:{task_id}", render_mode="rgb_array")
    env.reset(seed=1)
    frames = [env.render()]
    for _ in range(3):
        env.step(env.action_space.sample())
        frames.append(env.render())
    assert min(frames[0].shape[:2]) >= 200 and frames[0].dtype == np.uint8
    assert not np.array_equal(frames[0], frames[-1])


def test_worlds_without_content_are_refused():
    for make in (lambda: MaskedRecall(shapes=1), lambda: BitRecall(bits=0),
                 lambda: PixelRecall(size=8), lambda: BitRecall(delay=-1)):  # fmt: skip
        with pytest.raises(ValueError, match="to be at least"):
            make()


@pytest.mark.parametrize("task", [BitRecall(length=2), MaskedRecall(), PixelRecall(opposite=True)])
def test_perfect_play_is_every_answer_right_when_it_is_asked_for(task):
    vector = NativeVector(task, 6, seed=1)
    best = task.best_play(vector.reset().world_seed)
    for t in range(task.horizon):
        cue, _, _ = task.current_cues()
        if isinstance(task, PixelRecall):  # corners show the colours in order
            cue = 3 - cue[:, 0]
        step = vector.step(cue)
        assert np.array_equal((step.final or step.rows).prev_reward, best.reward[:, t])
    assert step.final.success.all() and best.reward.sum(1) == pytest.approx(np.ones(6))
