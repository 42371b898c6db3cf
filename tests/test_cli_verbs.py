"""Every verb of the command line, from end to end."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import command, flags, lines, no_plots, tiny

import amago
from amago import api
from amago.cli import main
from amago.cli.command import VERBS
from amago.cli.parsing import switched
from amago.cli.train import train_options
from amago.envs.catalogue import PRESETS
from amago.presets.ablations import ABLATIONS
from amago.saved.source import find_source

DKD = "dark-key-to-door"
LINE = flags(
    tiny(DKD, {"run.epochs": 3, "run.eval_interval": 1, "run.updates_per_epoch": 1}),
    amago.preset(DKD),
)
SETTINGS = [
    f"{flag[2:]}={value}"
    for flag, value in zip(LINE[::2], LINE[1::2], strict=True)
    if flag != "--run.threads"
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def _shell(*arguments: str | Path) -> str:
    line = [sys.executable, "-m", "amago", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    line = [sys.executable, "-u", "-m", "amago", "examples", "long_corridor"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None and started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == b""
    assert started.returncode == 141


def test_one_seed_means_the_same_worlds_and_actions_from_python(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = trained
    settings = find_source(folder).config.env
    for seed in (7, 8):
        line = ["eval", folder, "--episodes", "3", "--seed", str(seed), "--json"]
        code, out, _ = command(capsys, *line)
        scores = amago.evaluate(api.load(folder), settings, 3, seed=seed)
        told = json.loads(out)
        assert code == 0 and told["return_mean"] == scores["return_mean"]
        assert told["references"]["oracle"] == scores["references"]["oracle"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run made by the command, and what the command printed."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    return folder, _shell("train", DKD, *LINE, "--seed", "5", "--run-dir", folder)


def test_train_prints_plain_lines_an_evaluation_and_the_adaptation_curve(
    trained: tuple[Path, str],
) -> None:
    folder, out = trained
    assert f"run folder: {folder}" in out
    for epoch in (1, 2, 3):
        assert re.search(rf"^epoch {epoch}/3 \| return .* \| left 0:\d\d$", out, re.M)
    assert "Evaluation" in out and "Adaptation" in out and "oracle" in out
    assert "\x1b" not in out, "escape codes in a pipe"
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert f"curves: {folder / 'curves.png'}" in out.replace("\n", "")
    assert json.loads((folder / "config.json").read_text())["seed"] == 5


def test_train_without_a_preset_trains_the_default_one_in_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    code, _, err = command(capsys, "train", *LINE, "--epochs", "1", "--threads", "1")
    assert code == 0, err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith(f"{DKD}-seed0-") and len(lines(folder)) == 1


def test_resume_of_a_finished_run_shows_its_result_again(
    trained: tuple[Path, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    before = (trained[0] / "metrics.jsonl").read_bytes()
    code, out, _ = command(capsys, "resume", trained[0])
    assert code == 0 and "Evaluation" in out and "epoch " not in out
    assert (trained[0] / "metrics.jsonl").read_bytes() == before


def _evaluate(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    code, out, err = command(capsys, "eval", *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)  # one object and nothing else
    return found


def test_eval_prints_one_json_object(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = _evaluate(capsys, trained[0], "--episodes", "6")
    assert found["episodes"] == 6 and len(found["return_per_block"]) == 10
    assert sum(found["return_per_block"]) == pytest.approx(found["return_mean"])
    assert found["return_std"] >= 0 and 0 <= found["success_rate"] <= 1


def test_eval_depends_on_its_seed_alone(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, c = (
        _evaluate(capsys, trained[0], "--episodes", "12", "--seed", seed) for seed in (1, 1, 2)
    )
    assert a == b and a != c


def test_eval_greedy_acts_the_same_whatever_the_sampling_seed(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    sampled = _evaluate(capsys, trained[0], "--episodes", "12", "--sampled")
    assert sampled == _evaluate(capsys, trained[0], "--episodes", "12")
    assert sampled != _evaluate(capsys, trained[0], "--episodes", "12", "--greedy")


def test_eval_of_best_uses_the_best_checkpoint(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    best = json.loads((trained[0] / "checkpoints" / "best.json").read_text())["checkpoint"]
    by_name = _evaluate(capsys, trained[0], "--episodes", "4", "--which", "best")
    assert by_name == _evaluate(capsys, trained[0], "--episodes", "4", "--which", int(best))


def test_eval_prints_tables_for_people(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command(capsys, "eval", trained[0], "--episodes", "3")
    assert code == 0 and "Adaptation" in out and re.search(r"\b3 rollouts", out)


@pytest.mark.parametrize(("name", "magic"), [("a.gif", b"GIF8"), ("deep/a.mp4", b"ftyp")])
def test_eval_films_a_rollout(
    trained: tuple[Path, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    magic: bytes,
) -> None:
    film = tmp_path / name
    found = _evaluate(capsys, trained[0], "--episodes", "2", "--video", film)
    assert found["episodes"] == 2
    assert magic in film.read_bytes()[:12]


def test_eval_draws_what_the_transformer_attends_to(
    trained: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "deep" / "attention.png"
    _evaluate(capsys, trained[0], "--episodes", "2", "--attention", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_attention_of_an_agent_without_any_is_refused(tmp_path: Path) -> None:
    from amago.agent.agent import Agent
    from amago.agent.policy import AgentPolicy
    from amago.envs.registry import make_vector
    from amago.evaluation.attention import diagnose_rollout
    from amago.evaluation.play import PlaySettings

    config = replace(amago.preset("t-maze"), memory="gru")
    vector = make_vector(config.env, seed=0, num_lanes=1)
    policy = AgentPolicy(Agent(vector.spec, config), seed=0)
    with pytest.raises(ValueError, match="--memory transformer"):
        diagnose_rollout(policy, config.env, PlaySettings())


def test_presets_lists_all_and_prints_every_setting_of_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = command(capsys, "presets")
    assert code == 0 and all(name in out for name in PRESETS)
    for name in PRESETS:
        code, out, _ = command(capsys, "presets", name)
        assert code == 0 and PRESETS[name].summary in " ".join(out.split())
        for setting in ("env.id", "optim.learning_rate", "transformer.model_dim", "run.epochs"):
            assert re.search(rf"^ +{re.escape(setting)} = ", out, re.M)


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_names_to_type_are_never_cut(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for line, names in ((["presets"], PRESETS), (["presets", "--ablations"], ABLATIONS)):
        code, out, _ = command(capsys, *line)
        first_words = {row.split()[0] for row in out.splitlines() if row.strip()}
        assert code == 0 and {*names} <= first_words and "…" not in out
    if columns != "40":  # where there is room for it, settings are whole, too
        words = {*out.split()}
        assert all({*item.changes} <= words for item in ABLATIONS.values())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_its_options(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, verb, "--help")
    assert code == 0 and f"amago {verb}" in out
    expected = {"train": "--optim.learning-rate", "eval": "--video", "sweep": "--jobs"}
    assert expected.get(verb, "") in out


def test_help_names_every_verb_and_preset(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        code, out, _ = command(capsys, *arguments)
        assert code == 0 and all(name in out for name in (*VERBS, *PRESETS))


def test_a_bare_switch_of_train_means_yes_and_no_switches_off() -> None:
    given = ["--control", "--epochs", "2", "--no-check", "--control", "false", "--control"]
    assert switched(given, "control", "check") == [
        "--control", "True", "--epochs", "2", "--check", "False", "--control", "false",
        "--control", "True",
    ]  # fmt: skip
    assert train_options("wind", ["--control", "--size", "tiny"]).control
    assert switched([], "control") == [] and not train_options("wind", []).control
    assert not train_options("wind", ["--size", "tiny", "--no-check"]).check


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "--version")[1].strip() == amago.__version__


@pytest.mark.parametrize("line", ["--help", "--version", "presets", "presets wind", "train --help"])
def test_what_only_prints_imports_nothing_heavy(line: str) -> None:
    program = (
        "import sys\nfrom amago.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'gymnasium', 'matplotlib', 'lmdb', 'tensorboard', 'pandas'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_sweep_runs_every_seed_then_skips_what_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "sweep"
    line = ["sweep", DKD, "--seeds", "0", "1", "--jobs", "1", "--root", root, "--set", *SETTINGS]
    code, out, err = command(capsys, *line)
    assert code == 0, out + err
    assert "2 done, 0 failed, 0 were complete before" in out
    runs = sorted(root.rglob("result.json"))
    assert [json.loads(path.read_text())["seed"] for path in runs] == [0, 1]
    configs = [json.loads((path.parent / "config.json").read_text()) for path in runs]
    assert all(item["config"]["env"]["kwargs"]["grid"] == 3 for item in configs)
    assert {"summary.json", "summary.csv", "summary.png", "curves.csv", "command.txt"} <= {
        path.name for path in root.iterdir()
    }
    written = [path.stat().st_mtime_ns for path in runs]
    code, out, _ = command(capsys, *line, "--export", tmp_path / "evidence")
    assert code == 0 and "0 done, 0 failed, 2 were complete before" in out
    assert [path.stat().st_mtime_ns for path in runs] == written
    assert len(list((tmp_path / "evidence").rglob("evals.csv"))) == 2


def test_sweep_takes_every_set_flag_not_only_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Any] = []

    def stop(jobs: Any, *_: Any, **__: Any) -> None:
        planned.extend(jobs)
        raise ValueError("that is enough")

    monkeypatch.setattr("amago.sweep.sweep.run_jobs", stop)
    with pytest.raises(SystemExit):
        main(["sweep", "wind", "--set", "memory=gru", "--set", "run.epochs=2",
              "--root", str(tmp_path)])  # fmt: skip
    assert planned[0].overrides == {"memory": "gru", "run.epochs": "2"}


@pytest.mark.parametrize("value", ["true", "false"])
def test_sweep_can_set_what_is_yes_or_no(value: str) -> None:
    """The command line of a child must be one that `amago train` understands."""
    from amago.cli.parsing import parse
    from amago.cli.train import TrainOptions
    from amago.sweep.jobs import amago_command, plan

    (job,) = plan(["wind"], [0], [f"agent.greedy={value}", "heads.popart=false"], "r")
    arguments = amago_command(job, "start")[5:]
    options = parse(TrainOptions, arguments, "amago", TrainOptions(amago.preset("wind")))
    assert options.config.agent.greedy is (value == "true")
    assert options.config.heads.popart is False


def test_arguments_of_any_environment_can_be_given_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    few = flags(tiny("wind", {"env.kwargs": {}}), amago.preset("wind"))
    code, _, err = command(capsys, "train", "wind", *few, "--env.kwargs.horizon", "9",
                           "--run-dir", tmp_path / "run")  # fmt: skip
    assert code == 0, err


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("amago.training.loop.learn_epoch", interrupt)
    code, _, err = command(capsys, "train", DKD, *LINE, "--run-dir", tmp_path / "run")
    assert code == 130 and f"amago resume {tmp_path / 'run'}" in err


def test_a_terminal_shows_a_live_view_of_the_progress(tmp_path: Path) -> None:
    child, screen = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
        try:
            sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
            no_plots()
            main(["train", DKD, *LINE, "--run-dir", str(tmp_path / "run")])
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(int(end.code or 0))
        finally:
            os._exit(9)
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(screen)
    text = shown.decode(errors="replace")
    assert code == 0, text
    assert "\x1b[" in text and "3/3" in text
    shown_words = set(text.split())
    for part in ("return", "success", "critic", "entropy", "steps/s", "updates/s", "random"):
        assert any(part in word for word in shown_words), part
    assert "…" not in text, "cut off"
    assert "epoch 1/3 |" not in text, "plain lines in a terminal"
    assert "Adaptation" in text
