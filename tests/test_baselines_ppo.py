"""Recurrent PPO behind amago's run folder: same inputs, worlds, evaluation and files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from test_run_helpers import command, flags, lines, tiny

import amago
from amago import api
from amago.agent.policy import batch_of
from amago.board.table import board_rows
from amago.board.tasks import TASKS
from amago.cli.board_run import main as run_one
from amago.config import Config, override
from amago.envs.registry import make_vector
from amago.evaluation.play import play
from amago.nets.timestep import MLPEncoder
from amago.report.runs import read_run
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import RolloutTracker
from amago.training.view import Silent
from amago.types import Timestep

pytest.importorskip("sb3_contrib")
from amago.baselines import recurrent_ppo
from amago.baselines.catalogue import METHODS
from amago.baselines.lanes import Sb3Lanes
from amago.baselines.ppo_policy import MaskedLstmPolicy, PpoPolicy, RowFeatures
from amago.baselines.rows import RowVectors
from amago.baselines.settings import PpoSettings

DKD = "dark-key-to-door"


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all else that these runs do."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: Path(path).touch())
    monkeypatch.setattr(api, "plot_run", lambda *_, **__: None)


def _rows(preset: str, steps: int = 3) -> tuple[Config, Any, Timestep]:
    """The rows after some random steps of a preset's lanes."""
    config = tiny(preset)
    env = make_vector(config.env, seed=3, num_lanes=3)
    player, rows = RandomPolicy(env.spec, 0), env.reset()
    for _ in range(steps):
        rows = env.step(player.act(rows, None)[0]).rows
    return config, env, rows


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A run of our own agent, and the worlds of its final test."""
    folder = tmp_path_factory.mktemp("own") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "plot_run", lambda *_, **__: None)
        seeds = _watch_worlds(patch)
        api.train(tiny(DKD, {"run.eval_interval": 1}), 5, folder, preset=DKD, progress=False)
    return folder, seeds[0]


def _watch_worlds(patch: pytest.MonkeyPatch) -> list[list[int]]:
    """The worlds of every test that is played from now on."""
    seeds: list[list[int]] = []

    def watched(policy: Any, lanes: Any, episodes: int, **rest: Any) -> Any:
        records = play(policy, lanes, episodes, **rest)
        seeds.append(sorted(record.world_seed for record in records))
        return records

    patch.setattr("amago.evaluation.evaluate.play", watched)
    return seeds


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ppo") / "run"
    config = tiny(DKD, {"run.eval_interval": 1})
    recurrent_ppo.train(folder, config, 5, PpoSettings(), Silent(), preset=DKD)
    return folder


@pytest.mark.parametrize(
    "preset", [DKD, "package-delivery", "masked-recall", "wind", "pixel-recall"]
)
def test_a_row_comes_back_from_its_vector_as_the_agent_reads_it(preset: str) -> None:
    _, env, rows = _rows(preset)
    vectors = RowVectors(env.spec)
    ours, theirs = (
        batch_of(rows, torch.device("cpu")),
        vectors.read(torch.from_numpy(vectors.write(rows))),
    )
    assert ours.lengths == theirs.lengths
    for name in ("prev_action", "prev_reward", "time", "first", "instruction", "num_goals",
                 "progress"):  # fmt: skip
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert torch.equal(mine, other), name
    for key, value in ours.obs.items():
        assert torch.equal(value, theirs.obs[key]) and value.dtype == theirs.obs[key].dtype


@pytest.mark.parametrize("preset", [DKD, "package-delivery", "masked-recall"])
def test_ppo_has_exactly_the_inputs_of_our_agent(preset: str) -> None:
    config, env, rows = _rows(preset)
    vectors = RowVectors(env.spec)
    features = RowFeatures(gym.spaces.Box(-1, 1, (vectors.width,)), vectors, config).eval()
    ours = MLPEncoder(env.spec, config.encoder, config.instruction).eval()
    ours.load_state_dict(features.encoder.state_dict())
    with torch.no_grad():
        read = features(torch.from_numpy(vectors.write(rows)))
        expected = ours(batch_of(rows, torch.device("cpu")))
    assert torch.equal(read, expected)


def test_lanes_hand_over_the_rows_worlds_and_ends_of_ours() -> None:
    config = tiny("t-maze")
    ours, theirs = (make_vector(config.env, seed=1, num_lanes=3) for _ in range(2))
    vectors = RowVectors(ours.spec)
    lanes = Sb3Lanes(theirs, vectors)
    tracker, records = RolloutTracker(ours), []
    assert np.array_equal(lanes.reset(), vectors.write(ours.reset()))
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(20):
        action = rng.integers(ours.spec.action.size, size=3)
        step = ours.step(action)
        records += tracker.add(step)
        seen, reward, done, infos = lanes.step(action)
        assert np.array_equal(seen, vectors.write(step.rows))
        final = {} if step.final is None else dict(zip(step.final_lanes, range(3), strict=False))
        assert done.tolist() == [lane in final for lane in range(3)]
        for lane in range(3):
            if lane in final:
                ended = step.final.select(np.array([final[lane]]))  # type: ignore[union-attr]
                assert reward[lane] == ended.prev_reward[0]
                assert np.array_equal(infos[lane]["terminal_observation"], vectors.write(ended)[0])
                assert infos[lane]["TimeLimit.truncated"] == (not ended.terminal[0])
                ends += 1
            else:
                assert reward[lane] == step.rows.prev_reward[lane] and infos[lane] == {}
    assert ends >= 3
    taken = lanes.take_records()
    assert [(r.total, r.world_seed) for r in taken] == [(r.total, r.world_seed) for r in records]
    assert lanes.take_records() == []


def _networks(preset: str) -> tuple[MaskedLstmPolicy, RowVectors, Any, Timestep]:
    config, env, rows = _rows(preset)
    lanes = Sb3Lanes(env, RowVectors(env.spec))
    model = recurrent_ppo._model(lanes, config, PpoSettings(), 0)
    networks: Any = model.policy
    return networks, lanes.rows, env, rows


def test_one_call_of_the_lstm_gives_the_numbers_of_the_loop_in_python() -> None:
    networks, *_ = _networks(DKD)
    lstm = networks.lstm_actor
    torch.manual_seed(0)
    features = torch.randn(4 * 6, lstm.input_size)
    state = tuple(torch.randn(1, 4, lstm.hidden_size) for _ in range(2))
    starts = torch.zeros(4, 6)
    starts[1, 0] = starts[3, 0] = 1.0
    slow = super(MaskedLstmPolicy, networks)._process_sequence
    for inside in (0.0, 1.0):  # also where a rollout begins within a sequence
        starts[2, 3] = inside
        ours = networks._process_sequence(features, state, starts.flatten(), lstm)
        theirs = slow(features, state, starts.flatten(), lstm)
        torch.testing.assert_close(ours, theirs)


def test_masked_actions_are_never_taken() -> None:
    networks, vectors, env, _ = _networks("masked-recall")
    policy = PpoPolicy(networks, vectors, seed=0, greedy=False)
    seen: list[bool] = []

    class Watching(PpoPolicy):
        def act(self, timestep: Timestep, state: Any) -> tuple[Any, Any]:
            action, state = super().act(timestep, state)
            mask = timestep.obs["action_mask"].reshape(len(timestep), -1).astype(bool)
            parts = np.split(mask, np.cumsum(env.spec.action.sizes)[:-1], -1)
            for part, chosen in zip(parts, action.reshape(len(timestep), -1).T, strict=True):
                seen.extend(part[np.arange(len(timestep)), chosen].tolist())
            return action, state

    policy = Watching(networks, vectors, seed=0, greedy=False)
    play(policy, env, 12)
    assert len(seen) > 50 and all(seen)


def test_sampled_play_depends_on_its_seed_alone() -> None:
    networks, vectors, env, _ = _networks(DKD)

    def totals(seed: int) -> list[float]:
        torch.rand(1)  # the state of torch's own generator does not matter
        policy = PpoPolicy(networks, vectors, seed=seed, greedy=False)
        actions: list[Any] = []
        play(policy, env, 6, watchers=[lambda step: actions.append(step.rows.prev_action.copy())])
        return np.concatenate(actions).tolist()  # type: ignore[no-any-return]

    assert totals(1) == totals(1) != totals(2)


def test_memory_of_a_lane_is_cleared_where_a_rollout_begins() -> None:
    networks, vectors, _, rows = _networks(DKD)
    policy = PpoPolicy(networks, vectors, seed=0, greedy=True)
    noise = tuple(torch.randn_like(part) for part in policy.initial_state(3))
    begun = replace(rows, time=np.array([0, 3, 0]))
    _, after = policy.act(begun, noise)
    _, fresh = policy.act(begun, policy.initial_state(3))
    same = [torch.equal(after[0][:, lane], fresh[0][:, lane]) for lane in range(3)]
    assert same == [True, False, True]
    assert torch.equal(policy.select(after, np.array([2]))[1], after[1][:, 2:])


@pytest.mark.parametrize("preset", ["bit-recall", "masked-recall", "wind", "pixel-recall"])
def test_every_kind_of_action_and_observation_is_learned_from(preset: str, tmp_path: Path) -> None:
    config = tiny(preset, {"run.epochs": 1})
    recurrent_ppo.train(tmp_path / "run", config, 0, PpoSettings(passes=1), Silent())
    (row,) = lines(tmp_path / "run")
    assert np.isfinite(row["loss/actor"]) and np.isfinite(row["policy/entropy"])


def test_the_run_folder_is_that_of_our_own_runs(trained: Path, own: tuple[Path, list[int]]) -> None:
    folder = own[0]
    ours, theirs = (json.loads((f / "result.json").read_text()) for f in (folder, trained))
    assert set(ours) == set(theirs)
    assert ours["reference_scores"]["random"] == theirs["reference_scores"]["random"]
    assert ours["references"]["oracle"] == theirs["references"]["oracle"], "the same worlds"
    header = json.loads((trained / "config.json").read_text())
    assert header["baseline"]["method"] == "recurrent-ppo"
    assert header["config"] == json.loads((folder / "config.json").read_text())["config"]
    logged = {"epoch", "env_steps", "updates", "rollout/return_mean", "eval/return_mean",
              "loss/actor", "loss/critic", "policy/entropy"}  # fmt: skip
    for row, mine in zip(lines(trained), lines(folder), strict=True):
        assert logged <= set(row)
        assert row["env_steps"] == mine["env_steps"], "as many steps per epoch"
    assert lines(trained)[0]["random/return_mean"] == lines(folder)[0]["random/return_mean"]
    timing = [json.loads(line) for line in (trained / "timing.jsonl").read_text().splitlines()]
    assert {"seconds", "collect_cpu_seconds", "learn_cpu_seconds"} <= set(timing[0])
    assert read_run(trained).seconds == pytest.approx(sum(row["seconds"] for row in timing))


def test_the_same_seed_gives_the_same_run_in_the_worlds_of_ours(
    trained: Path, own: tuple[Path, list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = _watch_worlds(monkeypatch)
    config = tiny(DKD, {"run.eval_interval": 1})
    recurrent_ppo.train(tmp_path / "b", config, 5, PpoSettings(), Silent(), preset=DKD)
    assert worlds[0] == own[1]
    assert (trained / "metrics.jsonl").read_bytes() == (tmp_path / "b/metrics.jsonl").read_bytes()


def test_the_learning_rate_falls_and_updates_are_those_that_were_made(tmp_path: Path) -> None:
    config = tiny(DKD, {"run.epochs": 4})
    rates, updates = [], []
    settings = PpoSettings(learning_rate=0.01, final_fraction=0.2, passes=3, target_kl=1e9)
    with recurrent_ppo._opened(tmp_path / "a", config, 0, settings, DKD, False) as run:
        while len(rates) < 4:
            ended = recurrent_ppo._epoch(run, Silent(), None)
            rates.append(run.model.policy.optimizer.param_groups[0]["lr"])
            updates.append(run.updates)
        assert ended and rates == pytest.approx([0.01, 0.008, 0.006, 0.004])
        rows = run.steps_per_epoch * run.lanes.num_envs
    assert np.diff([0, *updates]).tolist() == [3 * -(-rows // settings.batch_rows)] * 4

    cautious = replace(settings, target_kl=1e-9)
    with recurrent_ppo._opened(tmp_path / "b", config, 0, cautious, DKD, False) as run:
        recurrent_ppo._epoch(run, Silent(), None)
        assert 0 < run.updates < updates[0], "an epoch whose policy has moved ends early"


def test_minutes_end_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = flags(tiny("t-maze", {"run.epochs": 500}), amago.preset("t-maze"))
    start = ["baseline", "recurrent-ppo", "t-maze", *line, "--run-dir", tmp_path / "run"]
    code, _, err = command(capsys, *start, "--minutes", "0.000001")
    assert code == 0, err
    assert len(lines(tmp_path / "run")) == 1
    assert json.loads((tmp_path / "run" / "result.json").read_text())["epochs"] == 1


def test_the_board_trains_a_baseline_to_its_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(TASKS, "t-maze", replace(TASKS["t-maze"], bar=-1.0))
    changed = tiny("t-maze", {"run.epochs": 6, "run.eval_interval": 2})
    line = flags(changed, amago.preset("t-maze"))
    folder = tmp_path / "t-maze__recurrent-ppo" / "seed-0"
    run_one("t-maze", "0", str(folder), "--method", "recurrent-ppo", *line)
    (row,) = board_rows(tmp_path)
    assert row.method == "recurrent-ppo" and row.spent[0] is not None
    assert row.spent[0].minutes > 0 and len(read_run(folder).metrics) == 2
    code, _, err = command(
        capsys, "board", "dark-key-to-door", "--method", "algorithm-distillation"
    )
    assert code == 2 and "worlds of its own" in err


class Bandit(gym.Env[Any, Any]):
    """Ten steps; action 1 of three earns 1."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(3)
    time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return np.zeros(1, np.float32), float(action == 1), False, self.time == 10, {}


@pytest.mark.slow
def test_what_was_seen_four_steps_ago_is_learned(tmp_path: Path) -> None:
    changes = {**METHODS["recurrent-ppo"].changes, "env.id": "popgym/RepeatPreviousEasy",
               "run.epochs": 16, "run.eval_interval": 16, "run.threads": 1, "run.report": False,
               "run.eval_episodes": 32, "run.final_eval_episodes": 32}  # fmt: skip
    config = override(amago.preset("popgym"), changes)
    result = recurrent_ppo.train(tmp_path / "run", config, 0, PpoSettings(), Silent())
    # Random play and every policy without memory have -.5: one of four cards is right.
    assert result["random_return_mean"] < -0.4 and result["return_mean"] > 0.0


def test_a_trivial_task_is_learned_in_an_environment_of_gymnasium(tmp_path: Path) -> None:
    gym.register("TestBandit-v0", Bandit)
    try:
        config = tiny("gym", {"env.id": "TestBandit-v0", "env.horizon": 10, "run.epochs": 12,
                              "env.num_lanes": 16, "run.eval_interval": 12,
                              "rollout.steps_per_epoch": 10, "agent.discounts": "single",
                              "agent.acting_discount": 0.9})  # fmt: skip
        settings = PpoSettings(learning_rate=0.02, entropy=0.0)
        result = recurrent_ppo.train(tmp_path / "run", config, 0, settings, Silent())
    finally:
        del gym.registry["TestBandit-v0"]
    assert result["return_mean"] > 8.0 > result["reference_scores"]["random"]["return_mean"]


def test_runs_of_a_baseline_say_that_they_keep_no_weights(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("eval", "resume", "watch"):
        code, _, err = command(capsys, verb, trained)
        assert code == 2 and "recurrent-ppo" in err and "no weights" in err


def test_the_command_line_trains_prints_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = flags(tiny("t-maze"), amago.preset("t-maze"))
    start = ["baseline", "recurrent-ppo", "t-maze", *line, "--run-dir", tmp_path / "run"]
    code, out, err = command(capsys, *start, "--ppo.passes", "1", "--seed", "2")
    assert code == 0, err
    assert "Evaluation" in out and "curves.png" in out
    assert (tmp_path / "run" / "curves.png").is_file()
    header = json.loads((tmp_path / "run" / "config.json").read_text())
    assert header["seed"] == 2 and header["baseline"]["settings"]["passes"] == 1
    code, _, err = command(capsys, *start)
    assert code == 2 and "is not empty" in err
    code, _, err = command(capsys, *start, "--exist", "overwrite")
    assert code == 0, err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "expected the name of a method"),
        (["recurent-ppo"], "did you mean"),
        (["recurrent-ppo", "no-such-preset"], "no-such-preset"),
        (["recurrent-ppo", "t-maze", "--histories.count", "3"], "belongs to another method"),
        (["recurrent-ppo", "t-maze", "--ppo.clip", "2"], "--ppo.clip must be in (0, 1), got 2.0"),
        (["recurrent-ppo", "t-maze", "--minutes", "-1"], "--minutes must be more than 0"),
        (
            ["algorithm-distillation", "t-maze"],
            "knows amago/DarkKeyToDoor-v0 alone, got amago/TMaze-v0",
        ),
    ],
)
def test_bad_input_is_refused_with_advice(
    line: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, _, err = command(capsys, "baseline", *line)
    assert code == 2 and said in err
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_learned_with_leave_no_folder(tmp_path: Path) -> None:
    config = override(tiny(DKD), {"env.id": "amago/NoSuchRoom-v0"})
    with pytest.raises(ValueError, match="NoSuchRoom"):
        recurrent_ppo.train(tmp_path / "run", config, 0, PpoSettings(), Silent())
    assert not (tmp_path / "run").exists()


def test_the_list_names_every_method_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "baseline", "--list")
    assert code == 0
    for text in ("amago baseline recurrent-ppo PRESET", "amago train PRESET --ablate gcsl",
                 "amago baseline algorithm-distillation PRESET", "--ablate separate-memory",
                 "--ablate no-memory"):  # fmt: skip
        assert text in out
