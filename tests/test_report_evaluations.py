"""What people see of an evaluation: random play beside it, trials, errors, what to do next."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rich.console import Console, RenderableType
from test_report_helpers import write_run
from test_run_helpers import command, flags, lines, tiny

import amago
from amago import api
from amago.envs.in_process import InProcessVector
from amago.envs.settings import EnvSettings
from amago.evaluation.evaluate import evaluate
from amago.evaluation.pooled import pool
from amago.report.evaluations import evaluation_table, headline, shows_tenths, verdict
from amago.report.page import Shown, report_page
from amago.report.panels import _levels
from amago.report.runs import find_runs, read_run
from amago.report.suites import _suite_rows, _suite_table
from amago.report.sweeps import summarise_sweep
from amago.report.tables import sweep_rows
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.scores import SCORES, Score, summarise
from amago.rollout.stats import RolloutRecord, Trial
from amago.training.view import COLUMNS

DOCUMENTED = (Path(__file__).parent.parent / "docs" / "metrics.md").read_text(encoding="utf-8")


def _printed(shown: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(shown)
    return console.export_text()


RESULT: dict[str, Any] = {
    "env": "amago/DarkKeyToDoor-v0", "preset": "dark-key-to-door", "seed": 3, "epochs": 100,
    "seconds": 601.2345, "return_mean": 1.6812345, "return_std": 0.5, "episodes": 200,
    "success_rate": 0.875, "greedy": False, "trials_mean": 2.0, "return_per_trial": [0.5, 1.18],
    "success_per_trial": [0.25, 0.9], "return_per_block": [0.1] * 10,
    "references": {"random": [0.1] * 10}, "length_mean": 9.0,
    "reference_scores": {
        "random": {"return_mean": 1.98, "return_std": 0.4, "success_rate": 0.1,
                   "trials_mean": 2.0, "return_per_trial": [1.0, 0.98],
                   "success_per_trial": [0.1, 0.1]},
        "no memory": {"return_mean": 1.5, "return_std": 0.4, "success_rate": 0.3},
        "oracle": {"return_mean": 4.0, "success_rate": 1.0},
    },
}  # fmt: skip


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.key)
def test_every_score_of_the_list_is_computed_shown_and_explained(score: Score, tmp_path: Path):
    assert score.key in summarise([_record((3, 1.0, True), (9, 0.0, False))])
    names = [f"rollout/{score.key}", score.key.removeprefix("return")]
    assert any(f"`{name}`" in DOCUMENTED for name in names)
    if score.label:
        run = read_run(write_run(tmp_path / "run"))
        page = report_page(replace(run, result=RESULT), {}, Shown())
        assert f"<th>{score.label}</th>" in page
        rows = [
            line.split()[0]
            for line in _printed(evaluation_table(RESULT)).split("\n")
            if line.strip()
        ]
        assert score.label in rows
    shown = {name for _, name in COLUMNS}
    assert shown >= {f"{part}/{score.key}" for part in score.live}


def test_random_play_and_a_control_stand_beside_the_agent() -> None:
    text = _printed(evaluation_table(RESULT))
    head = next(line for line in text.splitlines() if "agent" in line)
    assert head.split() == ["agent", "random", "play", "no", "memory", "oracle"]
    earned = next(line for line in text.splitlines() if line.strip().startswith("return"))
    assert earned.split() == [
        "return", "1.68", "±", "0.035", "1.98", "±", "0.028", "1.50", "±", "0.028", "4.00",
    ]  # fmt: skip
    assert "amago/DarkKeyToDoor-v0 (dark-key-to-door, seed 3)" in text
    assert "sampled actions" in text and "10.0 minutes" in text and "87.5%" in text
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_trials_have_their_return_and_success() -> None:
    text = " ".join(_printed(evaluation_table(RESULT)).split())
    assert "trial 1 0.500 (25%) 1.00 (10%) – –" in text and "trial 2 1.18 (90%)" in text
    many = {**RESULT, "return_per_trial": [0.1] * 30, "success_per_trial": None}
    text = _printed(evaluation_table(many))
    assert "trial 7" in text and "trial 30" in text and "trial 8" not in text


def test_a_run_below_random_play_says_so_first(capsys: pytest.CaptureFixture[str]) -> None:
    from amago.cli.evaluations import print_evaluation

    said = verdict(RESULT)
    assert said is not None and said.startswith("Not better than random play")
    assert "--run.epochs" in said and "check-env" in said
    print_evaluation(RESULT, EnvSettings())
    assert capsys.readouterr().out.startswith("Not better than random play")
    assert verdict({**RESULT, "return_mean": 3.0}) is None
    assert verdict({**RESULT, "reference_scores": {}}) is None


def test_tenths_are_shown_only_where_they_say_something(capsys) -> None:
    from amago.cli.evaluations import print_evaluation

    cart_pole = {**RESULT, "trials_mean": None, "return_per_trial": None}
    assert shows_tenths(RESULT, None) and not shows_tenths(cart_pole, None)
    assert not shows_tenths(RESULT, 2)  # --env.trials 2: the trials themselves say it
    assert shows_tenths({**cart_pole, "references": {"oracle": [0.4] * 10}}, None)
    assert not shows_tenths({**cart_pole, "references": {"oracle": [0.0] * 9 + [1.0]}}, None)
    assert not shows_tenths({**RESULT, "return_per_block": None}, None)
    print_evaluation(cart_pole, EnvSettings())
    print_evaluation(RESULT, EnvSettings(trials=2))
    assert "tenth" not in capsys.readouterr().out
    print_evaluation(RESULT, EnvSettings())
    assert "return per tenth" in capsys.readouterr().out


SMALL_ROLLOUTS = {"run.report": True, "env.num_lanes": 2, "run.epochs": 1}


def test_cart_pole_with_trials_shows_them_and_no_tenths_anywhere(tmp_path, capsys) -> None:
    config = tiny("gym", {**SMALL_ROLLOUTS, "env.trials": 3, "rollout.steps_per_epoch": 40})
    given = ["--run-dir", tmp_path / "run", *flags(config, amago.preset("gym"))]
    code, out, _ = command(capsys, "train", "gym", *given)
    assert code == 0 and "tenth" not in out
    assert "trial 1" in out and "trial 3" in out and "trial 4" not in out
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "tenth" not in page and "return per trial" in page
    code, out, _ = command(capsys, "eval", tmp_path / "run", "--episodes", 2)
    assert code == 0 and "tenth" not in out and "trial 3" in out


def test_trials_that_fill_a_horizon_show_tenths_also_where_all_rollouts_have_as_many(
    tmp_path, capsys
) -> None:
    # Nobody finds the door within two steps of a large grid: three trials in every rollout.
    kwargs = {"grid": 50, "trial_limit": 4, "horizon": 12}
    config = tiny("dark-key-to-door", {**SMALL_ROLLOUTS, "env.kwargs": kwargs})
    given = ["--run-dir", tmp_path / "run", *flags(config, amago.preset("dark-key-to-door"))]
    code, out, _ = command(capsys, "train", "dark-key-to-door", *given)
    assert code == 0 and "return per tenth" in out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["trials_mean"] == 3.0 and len(result["return_per_trial"]) == 3
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "return per tenth" in page and "return per trial" in page


def test_the_number_to_quote_pools_several_evaluations() -> None:
    rows = [
        {"eval/return_mean": float(n), "eval/return_std": 1.0, "eval/episodes": 50,
         "eval/success_rate": 0.5}
        for n in (0, 3, 5, 4)
    ]  # fmt: skip
    test = {"return_mean": 4.0, "return_std": 1.0, "episodes": 150, "success_rate": 0.5}
    found = pool(rows, test)
    assert found["evaluations"] == 4 and found["episodes"] == 300
    assert found["return_mean"] == pytest.approx(4.0)
    # Evaluations differ more than their rollouts explain: 3, 5, 4, 4 against 1/sqrt(300).
    assert found["return_error"] == pytest.approx(np.std([3, 5, 4, 4], ddof=1) / 2)
    assert found["success_rate"] == 0.5
    assert found["success_error"] == pytest.approx(0.5 / math.sqrt(300))
    alone = pool([], {**test, "success_rate": None})
    assert alone["evaluations"] == 1 and alone["return_error"] == pytest.approx(1 / math.sqrt(150))
    said = headline({**RESULT, "pooled": found})
    assert said == "return 4.00 ± 0.408, success 50.0% ± 2.9% (4 evaluations, 300 rollouts)"
    assert headline(RESULT) is None


def _record(*trials: tuple[int, float, bool | None]) -> RolloutRecord:
    made = tuple(Trial(*trial) for trial in trials)
    return RolloutRecord("", 0, sum(t.earned for t in made), made[-1].end, None, None, 0, made)


def test_the_index_of_a_trial_counts_only_where_every_rollout_played_it() -> None:
    two = [_record((3, 1.0, True), (9, 0.0, False)), _record((5, 0.0, False), (9, 2.0, True))]
    means = summarise(two)
    assert means["trials_mean"] == 2.0
    assert means["return_per_trial"] == [0.5, 1.0] and means["success_per_trial"] == [0.5, 0.5]
    quick = _record((1, 1.0, True), (2, 1.0, True), (4, 1.0, True), (9, 0.0, False))
    means = summarise([*two, quick])
    assert len(means["return_per_trial"]) == 1  # the second one may be cut off
    assert means["trials_mean"] == pytest.approx(8 / 3)
    single = summarise([_record((9, 1.0, True))])
    assert single["trials_mean"] is None and single["return_per_trial"] is None
    unknown = summarise([_record((3, 1.0, None), (9, 0.0, None))])
    assert unknown["return_per_trial"] == [1.0, 0.0] and unknown["success_per_trial"] is None


class Bandit(gym.Env[Any, Any]):
    """Two arms, three steps; pays from the second trial on, whatever is done."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    horizon = 3

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.time, self.trial = 0, 0 if seed is not None else self.trial + 1
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        paid = float(self.trial)
        return np.zeros(1, np.float32), paid, self.time == 3, False, {}


def test_returns_per_trial_are_measured_in_play() -> None:
    from amago.envs.trials import Trials

    lanes = InProcessVector(lambda: Trials(Bandit(), trials=3), 2, 0)
    result = evaluate(RandomPolicy(lanes.spec, 0), lanes, 4)
    assert result["trials_mean"] == 3.0 and result["return_per_trial"] == [0.0, 3.0, 6.0]
    assert result["success_per_trial"] is None and result["env"]


class Worse(gym.Env[Any, Any]):
    """Pays nothing; random play is as good as anything."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    horizon = 4

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.zeros(1, np.float32), 0.0, self.time == 4, False, {}


gym.register("amago-test/Worse-v0", Worse)


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amago.api.plot_run", lambda *_: None)
    monkeypatch.setattr("amago.report.curves.plot_run", lambda *_: None)


def test_train_and_eval_of_a_useless_agent_say_so(tmp_path, capsys, no_plots) -> None:
    config = tiny("gym", {"env.id": "amago-test/Worse-v0", "replay.context_length": 4,
                          "rollout.steps_per_epoch": 8, "run.report": False})  # fmt: skip
    folder = tmp_path / "run"
    given = flags(config, amago.preset("gym"))
    code, out, _ = command(capsys, "train", "gym", "--run-dir", folder, *given)
    report = out[out.index("Not better") :]
    assert code == 0 and report.startswith("Not better than random play")
    assert "random play" in report and f"amago doctor {folder}" in out.replace("\n", "")
    assert "amago resume" in out and "tenth" not in out
    code, out, _ = command(capsys, "eval", folder, "--episodes", 3)
    assert code == 0 and out.startswith("Not better than random play") and "sampled actions" in out
    code, out, _ = command(capsys, "eval", folder, "--episodes", 3, "--json", "--greedy")
    result = json.loads(out)
    assert result["greedy"] and result["reference_scores"]["random"]["return_mean"] == 0.0


def test_a_control_without_memory_is_trained_beside_on_request(tmp_path, capsys, no_plots):
    config = tiny("t-maze", {"run.report": False})
    folder = tmp_path / "run"
    given = ["--run-dir", folder, "--control", *flags(config, amago.preset("t-maze"))]
    code, out, _ = command(capsys, "train", "t-maze", *given)
    assert code == 0 and "no memory" in out and "random play" in out
    control = json.loads((folder / "control" / "config.json").read_text())
    assert control["config"]["memory"] == "feedforward" and control["seed"] == 0
    result = json.loads((folder / "result.json").read_text())
    measured = json.loads((folder / "control" / "result.json").read_text())
    assert result["reference_scores"]["no memory"]["return_mean"] == measured["return_mean"]
    # Same worlds: random play earned the same in both.
    assert result["random_return_mean"] == measured["random_return_mean"]
    assert _levels(read_run(folder), "return_mean").keys() == {"random", "oracle", "no memory"}
    code, out, _ = command(capsys, "train", "t-maze", *given, "--exist", "resume")
    assert code == 0 and "no memory" in out and len(lines(folder / "control")) == 2


def test_the_result_of_a_run_has_its_pooled_number(tmp_path, no_plots) -> None:
    folder = tmp_path / "run"
    config = tiny("wind", {"run.epochs": 4, "run.eval_interval": 1, "run.report": False})
    result = api.train(config, 0, folder).result
    assert result["pooled"]["evaluations"] == 4 and result["pooled"]["episodes"] == 16
    rows = [row["eval/return_mean"] for row in lines(folder)][-3:]
    assert result["pooled"]["return_mean"] == pytest.approx(np.mean([*rows, result["return_mean"]]))
    assert result["greedy"] is False and result["env"] == "amago/Wind-v0"


def _with_random(folder: Path, value: float) -> None:
    result = json.loads((folder / "result.json").read_text())
    result["reference_scores"]["random"] = {"return_mean": value, "success_rate": None}
    (folder / "result.json").write_text(json.dumps(result))


def test_sweeps_and_suites_show_random_play_and_what_is_not_better(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("amago.report.sweeps.plot_sweep", lambda *_: None)
    for name, random in (("popgym__env.id=GoodEasy", 0.1), ("popgym__env.id=BadEasy", 0.9)):
        folder = write_run(tmp_path / name / "seed-0", preset="popgym", level=0.5)
        header = json.loads((folder / "config.json").read_text())
        header["config"]["env"]["id"] = "popgym/" + name.partition("id=")[2]
        (folder / "config.json").write_text(json.dumps(header))
        _with_random(folder, random)
    rows = {row["group"]: row for row in sweep_rows(find_runs(tmp_path))}
    assert rows["popgym__env.id=BadEasy"]["not_better_than_random"]
    assert rows["popgym__env.id=GoodEasy"]["random_mean"] == 0.1
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    summarise_sweep(tmp_path, console)
    text = console.export_text()
    assert text.startswith("Not better than random play: id=BadEasy")
    assert "random" in text and max(map(len, text.splitlines())) <= 80
    text = _printed(_suite_table(_suite_rows(find_runs(tmp_path))))
    assert "0.900 !" in text and "0.100" in text and max(map(len, text.splitlines())) <= 80


def test_runs_that_are_not_finished_know_random_play_from_their_first_evaluation(tmp_path) -> None:
    folder = write_run(tmp_path / "run", complete=False)
    rows = lines(folder)
    rows[1]["random/return_mean"] = 0.25
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert _levels(read_run(folder), "return_mean") == {"random": 0.25}


def test_every_preset_says_how_its_agent_acts_and_eval_follows(tmp_path, capsys, no_plots) -> None:
    code, out, _ = command(capsys, "presets")
    acts = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line[1:2].isalpha()}
    assert code == 0 and acts["t-maze"] == "greedily" and acts["dark-key-to-door"] == "sampled"
    code, out, _ = command(capsys, "presets", "t-maze")
    assert "takes the most likely action" in out
    for name, said in (("t-maze", "most likely actions"), ("wind", "sampled actions")):
        api.train(tiny(name, {"run.report": False}), 0, tmp_path / name)
        _, out, _ = command(capsys, "eval", tmp_path / name, "--episodes", 2)
        assert said in out
        other = "--sampled" if name == "t-maze" else "--greedy"
        _, out, err = command(capsys, "eval", tmp_path / name, "--episodes", 2, other)
        assert said not in out and "was trained to act" in err
