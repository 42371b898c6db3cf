"""The memory report, on memories whose recall is known exactly and on tiny runs."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from test_run_helpers import command, tiny
from torch import Tensor, nn

import amago
from amago import api
from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.config import override
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.attention import events_by_row
from amago.evaluation.false_memory import _WipedPolicy, false_memory
from amago.evaluation.memory import MemoryReport
from amago.evaluation.play import PlaySettings, make_lanes, play
from amago.evaluation.reach import _KINDS, measure
from amago.evaluation.recall import _row_counts, _ShortMemoryPolicy, recall_curve
from amago.nets.memory.diagnose import diagnose
from amago.nets.memory.interface import Memory
from amago.nets.memory.transformer import TransformerMemory
from amago.nets.sequences import Sequences
from amago.nets.timestep import flat
from amago.types import BARE_KEY, Batch, Timestep, Trajectory

BITS = 6


class _Raw(nn.Module):
    """Rows as they are observed."""

    output_dim = BITS + 2

    def forward(self, batch: Batch) -> Tensor:
        return flat(batch.obs[BARE_KEY]).float()


class _Delayed(Memory):
    """Remembers one row alone: the one `back` rows ago, or nothing."""

    output_dim = BITS + 2

    def __init__(self, back: int) -> None:
        super().__init__()
        self.back = back

    def forward(self, x: Tensor, time: Tensor, sequences: Sequences) -> Tensor:
        rows = sequences.pad(x)
        shifted = nn.functional.pad(rows, (0, 0, self.back, 0))[:, : rows.shape[1]]
        return sequences.unpad(shifted)

    def initial_state(self, num_lanes: int) -> deque[Tensor]:
        return deque(maxlen=self.back + 1)

    def step(self, x: Tensor, time: Tensor, state: deque[Tensor]) -> tuple[Tensor, Any]:
        if not time.any():
            state.clear()
        state.append(x)
        return state[0] if len(state) > self.back else torch.zeros_like(x), state


class _Repeats(nn.Module):
    """Answers with the bits that are remembered."""

    def at_discount(self, hidden: Tensor, index: int, mask: Tensor | None) -> Any:
        return _Bits((hidden[:, :BITS] > 0.5).long())


class _Bits:
    def __init__(self, bits: Tensor) -> None:
        self._bits = bits

    def mode(self) -> Tensor:
        return self._bits


def _room(delay: int, rounds: int) -> EnvSettings:
    kwargs = {"bits": BITS, "length": 1, "delay": delay, "rounds": rounds}
    return EnvSettings(id="amago/BitRecall-v0", kwargs=kwargs)


def _by_hand(env: EnvSettings, back: int) -> Agent:
    """An agent that answers with what it saw `back` rows ago, and knows nothing else."""
    config = override(tiny("bit-recall"), {"env.kwargs": env.kwargs})
    with contextlib.closing(make_vector(env, seed=0, num_lanes=1)) as lanes:
        agent = Agent(lanes.spec, config)
    agent.encoder, agent.memory, agent.actor = _Raw(), _Delayed(back), _Repeats()  # type: ignore[assignment]
    return agent


SETTINGS = PlaySettings(episodes=24, num_lanes=24, greedy=True)


@pytest.mark.parametrize(("delay", "needed"), [(0, 2), (1, 4), (2, 4), (3, 8), (6, 8), (7, None)])
def test_recall_works_exactly_as_far_as_the_memory_reaches(delay: int, needed: int | None) -> None:
    env = _room(delay, rounds=5)
    agent = _by_hand(env, back=delay + 1)  # with the current row, delay + 2 rows
    with contextlib.closing(make_lanes(env, SETTINGS)) as lanes:
        found = recall_curve(agent, lanes, SETTINGS, context_length=10)
    assert found["whole"]["return_mean"] == pytest.approx(1.0) and found["left_out"] == []
    assert found["needed"] == needed
    rows = [point["rows"] for point in found["points"]]
    assert rows == [1, 2, 4, 8]
    for point in found["points"]:
        lost = 1.0 - point["return_mean"]
        assert point["lost"] == pytest.approx(lost, abs=1e-6)
        assert (lost < 1e-6) == (point["rows"] >= delay + 2), point


def test_points_that_would_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    env = _room(1, rounds=5)
    monkeypatch.setattr("amago.evaluation.recall.MOST_ROWS", 3 * 15 * 24)
    with contextlib.closing(make_lanes(env, SETTINGS)) as lanes:
        found = recall_curve(_by_hand(env, back=2), lanes, SETTINGS, context_length=10)
    assert [point["rows"] for point in found["points"]] == [1, 2]
    assert found["left_out"] == [4, 8] and found["needed"] is None


def test_row_counts_are_powers_of_two_below_the_context() -> None:
    assert _row_counts(1) == []
    assert _row_counts(8) == [1, 2, 4]
    assert _row_counts(9) == [1, 2, 4, 8]


def _agent(memory: str, preset: str = "dark-key-to-door") -> tuple[Agent, EnvSettings]:
    config = tiny(preset, {"memory": memory})
    with contextlib.closing(make_vector(config.env, seed=0, num_lanes=1)) as lanes:
        torch.manual_seed(0)
        return Agent(lanes.spec, config).eval(), config.env


@pytest.mark.parametrize("memory", ["transformer", "gru", "feedforward"])
def test_a_memory_of_all_rows_acts_like_the_agent_itself(memory: str) -> None:
    agent, env = _agent(memory)
    settings = PlaySettings(episodes=6, num_lanes=3, action_seed=4)
    taken: list[list[Any]] = [[], []]
    players = (AgentPolicy(agent, seed=4), _ShortMemoryPolicy(agent, settings, 64))
    for player, actions in zip(players, taken, strict=True):
        with contextlib.closing(make_lanes(env, settings)) as lanes:
            watch = [lambda step, seen=actions: seen.append(step.rows.prev_action.tolist())]
            play(player, lanes, 6, watchers=watch)
    assert taken[0] == taken[1] and len(taken[0]) > 20


def _row(rows: Timestep, time: list[int]) -> Timestep:
    return replace(rows, time=np.array(time))


def test_lanes_that_began_at_different_steps_remember_their_own_rows_alone() -> None:
    agent, env = _agent("transformer")
    with contextlib.closing(make_vector(env, seed=0, num_lanes=2)) as lanes:
        rows = [lanes.reset()]
        rng = np.random.default_rng(0)
        for _ in range(5):
            rows.append(lanes.step(rng.integers(5, size=2)).rows)
    settings = PlaySettings(greedy=True)
    hidden: list[Tensor] = []
    agent.actor.at_discount = (  # type: ignore[method-assign]
        lambda state, *_: (hidden.append(state), _Bits(torch.zeros(len(state)).long()))[1]
    )
    both = _ShortMemoryPolicy(agent, settings, 3)
    state = both.initial_state(2)
    for step, row in enumerate(rows):
        _, state = both.act(_row(row, [step, max(0, step - 2)]), state)
    alone = _ShortMemoryPolicy(agent, settings, 3)
    for lane, times in ((0, [3, 4, 5]), (1, [1, 2, 3])):
        state = alone.initial_state(1)
        for step, time in zip((3, 4, 5), times, strict=True):
            _, state = alone.act(_row(rows[step].select(np.array([lane])), [time]), state)
        torch.testing.assert_close(hidden[5][lane], hidden[-1][0])
    kept = both.select(both.initial_state(2), np.array([1]))
    assert len(kept.ages) == 1


def test_the_reach_of_a_head_is_counted_exactly() -> None:
    kinds = ["rollout start", "other", "rewards", "other", "trial starts"]
    first = np.zeros((5, 5))
    first[:, 0] = 1.0
    found = measure(first, kinds)
    assert found["distance"] == pytest.approx(2.5), "one, two, three and four rows back"
    assert (found["half_within"], found["most_within"]) == (2, 4)
    assert found["share"] == {kind: float(kind == "rollout start") for kind in _KINDS}
    even = np.tril(np.ones((5, 5)))
    even /= even.sum(1, keepdims=True)
    found = measure(even, kinds)
    assert found["share"] == pytest.approx(found["even"])
    assert sum(found["share"].values()) == pytest.approx(1.0)
    # Rows 3 and 4 can see the reward of row 2: a quarter and a fifth of their attention.
    assert found["share"]["rewards"] == pytest.approx((1 / 4 + 1 / 5) / 4)
    near = np.eye(5)
    assert measure(near, kinds)["share"]["this row"] == 1.0
    assert measure(near, kinds)["most_within"] == 0


def test_rows_are_what_happened_in_them() -> None:
    none = np.zeros(6, np.bool_)
    rollout = Trajectory(
        obs={},
        prev_action=np.zeros(6, np.uint8),
        prev_reward=np.array([0, 0, 1, 0, 0, 0], np.float32),
        first=np.array([True, False, True, False, True, False]),
        terminal=none,
    )
    assert events_by_row(rollout) == [
        "rollout start", "other", "rewards", "other", "trial starts", "other",
    ]  # fmt: skip


def test_attention_is_looked_at_within_the_context_alone() -> None:
    torch.manual_seed(0)
    settings = amago.preset("wind", "tiny").transformer
    narrow = TransformerMemory(4, settings, context_length=3, horizon=8)
    wide = TransformerMemory(4, settings, context_length=8, horizon=8)
    wide.load_state_dict(narrow.state_dict())
    x, time = torch.randn(8, 4), torch.arange(8)
    (cut,), (whole,) = diagnose(narrow, x, time), diagnose(wide, x, time)
    unseen = torch.ones(8, 8).tril(-3).bool()
    assert (cut.weights[:, unseen] == 0).all() and (whole.weights[:, unseen] > 0).all()
    torch.testing.assert_close(cut.weights.sum(-1), torch.ones_like(cut.weights.sum(-1)))
    torch.testing.assert_close(cut.weights[:, :3], whole.weights[:, :3])


def test_a_fact_that_is_made_false_misleads_whoever_remembers_it() -> None:
    env = _room(delay=2, rounds=1)  # shown at 0, asked for at 3
    agent = _by_hand(env, back=3)
    found = false_memory(agent, env, SETTINGS, time=2, worlds=24)
    earned = {name: arm["mean"] for name, arm in found["arms"].items()}
    assert earned["same, kept"] == 1.0
    assert abs(earned["changed, kept"]) < 0.4, "six bits that are right by chance"
    assert earned["same, wiped"] < 0.4
    assert found["worlds"] == 24 and found["time"] == 2
    difference = earned["changed, wiped"] - earned["changed, kept"]
    assert found["misled"]["mean"] == pytest.approx(difference)


def test_a_change_after_the_end_of_all_rollouts_is_not_reported() -> None:
    env = _room(delay=2, rounds=1)
    found = false_memory(_by_hand(env, back=3), env, SETTINGS, time=40, worlds=2)
    assert found == {"why_not": "no rollout was longer than 40 steps"}


def test_worlds_that_cannot_be_changed_say_why() -> None:
    config = tiny("gym", {"env.id": "CartPole-v1"})
    with contextlib.closing(make_vector(config.env, seed=0, num_lanes=1)) as lanes:
        agent = Agent(lanes.spec, config)
    found = false_memory(agent, config.env, SETTINGS, 3, 2)
    assert found == {"why_not": "amago does not know what could change in CartPole-v1"}


def test_memory_is_wiped_in_one_lane_at_a_time() -> None:
    agent, env = _agent("gru")
    policy = _WipedPolicy(AgentPolicy(agent, seed=0), 2)
    with (
        contextlib.closing(make_vector(env, seed=0, num_lanes=2)) as lanes,
        pytest.raises(ValueError, match="one lane at a time, got 2"),
    ):
        play(policy, lanes, 2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "plot_run", lambda *_, **__: None)
        for memory in ("transformer", "gru", "feedforward"):
            config = tiny("dark-key-to-door", {"memory": memory, "run.epochs": 1})
            api.train(config, 0, root / memory, preset="dark-key-to-door", progress=False)
    return {memory: root / memory for memory in ("transformer", "gru", "feedforward")}


@pytest.mark.parametrize("memory", ["transformer", "gru", "feedforward"])
def test_the_report_of_a_run_says_what_does_not_apply(
    memory: str, runs: dict[str, Path], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: Path(path).touch())
    code, out, err = command(capsys, "memory", runs[memory], "--episodes", "4")
    assert code == 0, err
    said = " ".join(out.split())
    assert ("attention does not apply" in said) == (memory != "transformer")
    assert ("recall does not apply" in said) == (memory == "feedforward")
    assert "A fact made false at step 6" in said and "memory.png" in said
    assert (runs[memory] / "memory.png").is_file()
    found = json.loads((runs[memory] / "memory.json").read_text())
    assert found["memory"] == memory and found["env"] == "amago/DarkKeyToDoor-v0"
    rows = [point["rows"] for point in found["recall"]["points"]]
    assert rows == ([] if memory == "feedforward" else [1, 2, 4, 8])
    assert set(found["change"]["arms"]) == {
        "same, kept", "same, wiped", "changed, kept", "changed, wiped",
    }  # fmt: skip


def test_an_agent_of_the_zoo_is_reported_where_one_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MemoryReport, "measure", lambda *_, **__: {
        "env": "room", "memory": "gru", "attention": {"why_not": "no"}, "change": {"why_not": "no"},
        "recall": {"points": [], "why_not": "no"},
    })  # fmt: skip
    code, out, err = command(capsys, "memory", "zoo:dark-key-to-door", "--json")
    assert code == 0, err
    assert json.loads(out)["agent"] == "zoo:dark-key-to-door"
    assert [path.name for path in tmp_path.iterdir()] == ["memory.json"]


def test_bad_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capsys, "memory", tmp_path)
    assert code == 2 and "is not a run" in err
    code, _, err = command(capsys, "memory", "zoo:dark-key-to-door", "--episodes", "1")
    assert code == 2 and "--episodes must be at least 2, got 1" in err
