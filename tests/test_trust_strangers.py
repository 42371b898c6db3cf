"""A folder from a stranger runs nothing, writes nowhere else and fools no terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import command, tiny
from test_trust_checkpoints import listing

from amago import api
from amago.checks import printable
from amago.envs.faults import Place, fault
from amago.envs.settings import EnvSettings
from amago.sweep.jobs import amago_command, plan

PAYLOAD = """
from pathlib import Path
Path({mark!r}).write_text("a stranger's code has run")
import gymnasium
gymnasium.register("Evil-v0", entry_point="gymnasium.envs.classic_control.cartpole:CartPoleEnv")
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    api.train(tiny("maze-runner", {"run.epochs": 2}), 0, folder, preset="maze-runner")
    api.plot_run = drawn
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What a payload would leave behind."""
    return tmp_path / "mark"


def edit(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    header = json.loads((folder / "config.json").read_text())
    change(header)
    (folder / "config.json").write_text(json.dumps(header))


def everything(run: Path) -> list[list[str | Path]]:
    """Every verb that reads a run folder."""
    return [
        ["resume", run],
        ["eval", run, "--episodes", "2", "--json"],
        ["relabel", run],
        ["import", "run", run, "--run", run],
        ["pack", run],
    ]


@pytest.mark.parametrize("key", ["id", "ids"])
@pytest.mark.parametrize("place", ["inside", "beside"])
def test_modules_that_a_folder_names_are_not_imported(
    key: str, place: str, run: Path, mark: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    where = run if place == "inside" else run.parent
    (where / "evil_module.py").write_text(PAYLOAD.format(mark=str(mark)))
    monkeypatch.chdir(where)
    name = "evil_module:Evil-v0"
    edit(run, lambda h: h["config"]["env"].update({key: [name] if key == "ids" else name}))
    for line in everything(run):
        code, out, err = command(capsys, *line)
        told = "'evil_module'" in err or "without the run's environment" in out
        assert told or (line[0] == "pack" and code == 2), (line, err)
    assert not mark.exists()


def test_a_module_is_imported_when_the_user_vouches_for_the_run(
    run: Path, mark: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.parent / "evil_module.py").write_text(PAYLOAD.format(mark=str(mark)))
    monkeypatch.chdir(run.parent)
    edit(run, lambda h: h["config"]["env"].update(id="evil_module:Evil-v0", kwargs={}))
    command(capsys, "eval", run, "--episodes", "2", "--trust")
    assert mark.exists(), "--trust did not import it"
    sys.modules.pop("evil_module", None)


def test_a_module_inside_the_folder_is_never_imported_even_when_trusted(
    run: Path, mark: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "evil_inside.py").write_text(PAYLOAD.format(mark=str(mark)))
    monkeypatch.chdir(run)
    edit(run, lambda h: h["config"]["env"].update(id="evil_inside:Evil-v0", kwargs={}))
    code, _, err = command(capsys, "eval", run, "--episodes", "2", "--trust")
    assert code == 2 and "'evil_inside'" in err and "cannot be imported" in err
    assert not mark.exists()


def test_a_sweep_vouches_for_modules_that_its_own_command_names() -> None:
    (job,) = plan(["gym"], [0], ["env.id=my_module:Mine-v0"], "root")
    assert amago_command(job, "resume")[-1] == "--trust"
    (job,) = plan(["gym"], [0], ["env.id=CartPole-v1"], "root")
    assert "--trust" not in amago_command(job, "resume")


LINKS = {
    "a file to be written": "curves.png",
    "metrics": "metrics.jsonl",
    "the lock": "writer.lock",
    "a checkpoint": "checkpoints/000001",
    "the weights": "checkpoints/000002/model.safetensors",
    "the replay": "replay",
    "the store": "replay/data.mdb",
    "the result": "result.json",
}


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_inside_a_folder_is_refused_and_what_it_points_to_stays(
    kind: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "diary.txt").write_text("dear diary")
    link = run / LINKS[kind]
    shutil.rmtree(link) if link.is_dir() else link.unlink(missing_ok=True)
    target = secret if "." not in link.name else secret / "diary.txt"
    os.symlink(target, link)
    for line in everything(run):
        code, _, err = command(capsys, *line)
        assert code == 2 and "symbolic link" in err, (line, err)
    assert listing(secret) == {"diary.txt": b"dear diary"}


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "replay/data.mdb", "anything"])
def test_a_pipe_inside_a_folder_is_refused_and_nobody_waits_for_it(
    name: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    for line in (*everything(run), ["verify", run]):
        code, _, err = command(capsys, *line)
        assert code == 2 and "neither a file nor a folder" in err, (line, err)


def test_a_file_of_an_error_imports_its_module_only_for_who_vouches_for_it(
    tmp_path: Path, mark: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil_repeat.py").write_text(PAYLOAD.format(mark=str(mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    settings = EnvSettings(id="evil_repeat:Evil-v0")
    text = str(fault(Place("Evil", 0, 3, 1), KeyError("x"), [0], settings))
    advice = re.search(r"`amago (check-env \S+) --trust` repeats it", text)
    assert advice is not None
    code, _, err = command(capsys, *advice[1].split())
    assert code == 2 and "'evil_repeat'" in err and "--trust" in err and not mark.exists()
    code, out, _ = command(capsys, *advice[1].split(), "--trust")
    assert code == 0 and "nothing failed this time" in out and mark.exists()
    Path(advice[1].split()[1]).unlink()


def test_nothing_is_sent_to_a_service_that_a_folder_names(
    run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent(*_: Any, **__: Any) -> None:
        raise AssertionError("it would have been sent")

    monkeypatch.setattr("amago.training.trackers.WandbTracker", sent)
    edit(run, lambda h: h["config"]["run"].update(wandb_project="strangers-project"))
    api.resume(run, epochs=3)
    assert "'strangers-project', to which nothing is sent" in caplog.text
    assert json.loads((run / "config.json").read_text())["config"]["run"]["wandb_project"]
    with pytest.raises(AssertionError, match="would have been sent"):
        api.resume(run, trust=True)
    with pytest.raises(AssertionError, match="would have been sent"):
        api.resume(run, epochs=4, set={"run.wandb-project": "mine"})


ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"


def test_control_characters_never_reach_the_terminal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(run, lambda h: h.update(preset=ESCAPE, custom={ESCAPE: ESCAPE}))
    for line in (["resume", run], ["eval", run], ["relabel", run]):
        code, out, err = command(capsys, *line)
        assert not set(ESCAPE) & set((out + err).replace("]0;owned[2J31m", "")) - set(
            "]0;owned[2J31m"
        )
    edit(run, lambda h: h.update(preset="", custom={}))
    edit(run, lambda h: h["config"]["env"].update(id=ESCAPE))
    code, out, err = command(capsys, "eval", run)
    assert code == 2 and "\x1b" not in out + err and "\\x1b" in err
    result = json.loads((run / "result.json").read_text())
    result["tasks"] = {ESCAPE: result.get("tasks")}
    (run / "result.json").write_text(json.dumps({**result, "preset": ESCAPE}))


def test_text_that_can_be_printed_stays_as_it_is() -> None:
    assert printable("größe → 3\n\tok") == "größe → 3\n\tok"
    assert printable("\x1b[31m\u202e") == "\\x1b[31m\\u202e"


ABSURD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "networks of petabytes": lambda c: c["transformer"].update(model_dim=2**40),
    "widths of petabytes": lambda c: c["encoder"].update(hidden=[10**9, 10**9]),
    "a billion lanes": lambda c: c["env"].update(num_lanes=10**9, eval_lanes=10**9),
    "a million workers": lambda c: c["env"].update(num_workers=10**6),
    "a million threads": lambda c: c["run"].update(threads=10**6),
    "endless epochs": lambda c: c["run"].update(epochs=10**40),
    "many tasks": lambda c: c["env"].update(ids=[f"a?b={n}" for n in range(10**4)]),
    "a task of petabytes": lambda c: c["env"].update(
        ids=[f"amago/MazeRunner-v0?size={10**9 + 1}"], num_lanes=4, kwargs={}
    ),
    "a world of petabytes": lambda c: c["env"]["kwargs"].update(size=10**9 + 1),
    "no number": lambda c: c["optim"].update(learning_rate=float("nan")),
    "an infinite number": lambda c: c["optim"].update(learning_rate=float("inf")),
    "text for a number": lambda c: c["run"].update(epochs="3"),
    "an unknown setting": lambda c: c["run"].update(shell="rm -rf /"),
}


@pytest.mark.parametrize("kind", ABSURD)
def test_absurd_settings_are_refused_before_anything_is_made(
    kind: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(run, lambda header: ABSURD[kind](header["config"]))
    for line in everything(run)[:2]:
        before = listing(run)
        code, _, err = command(capsys, *line)
        assert code == 2 and "Traceback" not in err and "unexpected" not in err, err
        assert listing(run) == before


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "1" * 10_000, "\xff", "nul"])
def test_json_without_end_is_refused(
    text: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "config.json").write_text(text, encoding="latin-1")
    code, _, err = command(capsys, "eval", run)
    assert code == 2 and "config.json" in err and "unexpected" not in err
