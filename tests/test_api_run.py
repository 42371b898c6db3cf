"""`amago.train` as a user calls it: presets by name, callbacks, progress, and what it returns."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from test_run_helpers import differing, tiny

import amago
from amago import api
from amago.arguments import resolve, run_name
from amago.training.notebook import NotebookView, in_notebook
from amago.training.view import _PlainView, make_view

SMALL = {
    "run.updates_per_epoch": 1,
    "run.eval_episodes": 2,
    "run.final_eval_episodes": 2,
    "rollout.steps_per_epoch": 8,
    "env.num_lanes": 2,
    "env.eval_lanes": 2,
    "replay.context_length": 8,
    "replay.batch_rows": 24,
    "run.threads": 1,
}


class Coin(gym.Env[np.ndarray, int]):
    """Which side is up is drawn once and pays."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    horizon = 4

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.side, self.time = self.np_random.integers(2), 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.time += 1
        over = self.time == self.horizon
        return np.zeros(1, np.float32), float(action == self.side), over, False, {}

    def render(self) -> np.ndarray:
        return np.full((32, 32, 3), 100 * self.side, np.uint8)


def Invisible() -> Coin:  # noqa: N802 - it stands in for the class
    """A coin that nobody has drawn."""
    env = Coin()
    env.render = super(Coin, env).render  # type: ignore[method-assign]
    return env


Invisible.__qualname__ = Coin.__qualname__


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_preset_a_class_and_a_number_of_epochs_are_enough() -> None:
    run = amago.train("gym", env=Coin, epochs=2, set=SMALL)
    assert run.run_dir.parent == Path("runs") and run.run_dir.name.startswith("Coin-seed0-")
    assert run.config.run.epochs == 2 and run.result["epochs"] == 2
    assert json.loads((run.run_dir / "config.json").read_text())["preset"] == "gym"

    assert list(run.metrics["epoch"]) == [1, 2]
    picture = run.curves()
    assert Path(picture) == run.run_dir / "curves.png" and "base64" in picture._repr_html_()
    film = run.film("coin.gif")
    assert Path(film).read_bytes()[:3] == b"GIF" and "image/gif" in film._repr_html_()
    with pytest.raises(ValueError, match="Coin cannot be drawn, because it has no render"):
        amago.Run(run.run_dir, env=Invisible).film("coin.gif")
    action, _ = run.policy.predict(np.zeros(1, np.float32))
    assert run.policy.action_space.contains(action)

    longer = run.resume(epochs=3)
    assert longer.result["epochs"] == 3 and list(longer.metrics["epoch"]) == [1, 2, 3]
    again = amago.Run(run.run_dir)
    shown = f"return {again.result['return_mean']:.4g} (random "
    assert repr(again).startswith(f"Run({str(run.run_dir)!r}, env=Coin, epoch 3 of 3, {shown}")


def test_metrics_are_a_list_of_dictionaries_without_pandas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = amago.train(tiny("wind"), run_dir="run", progress=False)
    real = builtins.__import__

    def without_pandas(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    assert [row["epoch"] for row in run.metrics] == [1, 2]


def test_callbacks_are_told_of_every_epoch_and_of_every_evaluation() -> None:
    epochs: list[amago.Epoch] = []
    evaluated: list[int] = []
    config = tiny("wind", {"run.epochs": 4, "run.eval_interval": 3})
    run = amago.train(
        config,
        run_dir="run",
        on_epoch=epochs.append,
        on_evaluation=lambda epoch: evaluated.append(epoch.number),
    )
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4] and evaluated == [3, 4]
    assert all(epoch.planned == 4 and epoch.run_dir == run.run_dir for epoch in epochs)
    rows = [json.loads(line) for line in (run.run_dir / "metrics.jsonl").open()]
    assert [epoch.metrics for epoch in epochs] == rows
    assert epochs[0].timing["seconds"] > 0


def test_a_run_that_is_not_better_than_random_play_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = amago.train(tiny("wind"), run_dir="run", progress=False)  # nobody earns anything in it
    assert "Not better than random play: the agent earns 0" in caplog.text
    assert "--optim.learning-rate" in caplog.text and "amago check-env" in caplog.text
    assert repr(run).endswith("return 0 (random 0), not better than random play)")


def test_a_run_that_is_stopped_early_is_tested_and_can_go_on_exactly() -> None:
    config = tiny("wind", {"run.epochs": 4, "run.eval_interval": 10})
    amago.train(config, run_dir="whole", progress=False)
    run = amago.train(config, run_dir="run", stop_when=lambda epoch: epoch.number == 2)
    assert run.result["epochs"] == 2 and repr(run).startswith(
        "Run('run', amago/Wind-v0, epoch 2 of 4"
    )
    assert run.resume().result["epochs"] == 4
    assert not differing(Path("whole"), Path("run"))


def test_an_exception_in_a_callback_leaves_a_checkpoint_and_says_how_to_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(epoch: amago.Epoch) -> None:
        if epoch.number == 2:
            raise KeyError("no such column")

    with pytest.raises(KeyError) as caught:
        small = {**SMALL, "run.report": False}
        amago.train("gym", env=Coin, epochs=4, set=small, run_dir="run", on_epoch=broken)
    assert caught.value.__notes__ == ["raised by on_epoch after epoch 2 of run"]
    assert 'checkpoint of epoch 2 is kept; go on with: amago.resume("run", env=Coin)' in caplog.text
    assert amago.resume("run", env=Coin).result["epochs"] == 4


def test_what_is_no_function_is_refused_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match="stop_when takes a function of one"):
        amago.train("wind", stop_when=5)  # type: ignore[arg-type]
    assert not Path("runs").exists()


def test_settings_are_found_by_the_last_part_of_their_names() -> None:
    config = resolve("gym", {"optim.learning_rate": 0.1}, {"epochs": 7, "num_lanes": 3})
    assert (config.run.epochs, config.env.num_lanes, config.optim.learning_rate) == (7, 3, 0.1)
    with pytest.raises(ValueError, match=r"several settings.*'encoder.hidden'.*'heads.hidden'"):
        resolve("gym", None, {"hidden": (8,)})
    with pytest.raises(ValueError, match=r"no argument 'epoch'.*did you mean epochs"):
        resolve("gym", None, {"epoch": 3})
    with pytest.raises(ValueError, match="preset or a Config as the first argument, got type"):
        amago.train(Coin)  # type: ignore[arg-type]


def test_an_id_and_the_name_of_a_memory_are_settings_too() -> None:
    short = {**SMALL, "env.kwargs.max_episode_steps": 20, "run.report": False}
    run = amago.train("gym", env="Acrobot-v1", memory="gru", epochs=1, set=short)
    assert run.run_dir.name.startswith("Acrobot-v1-seed0-")
    assert run.config.memory == "gru" and run.config.env.id == "Acrobot-v1"


@pytest.mark.parametrize(
    ("preset", "changes", "env", "name"),
    [
        ("gym", {}, None, "CartPole-v1"),
        ("", {"env.id": "my_module:Walk-v3"}, None, "Walk-v3"),
        ("t-maze-1000", {}, None, "t-maze-1000"),
        ("gym", {"env.id": "amago/Wind-v0"}, None, "Wind-v0"),
        ("multi-task", {}, None, "multi-task"),
        ("gym", {}, Coin, "Coin"),
        ("gym", {}, lambda: gym.make("Acrobot-v1"), "Acrobot-v1"),
        ("gym", {}, lambda: Coin(), "Coin"),
    ],
)
def test_runs_are_named_after_their_environment(
    preset: str, changes: dict[str, Any], env: Any, name: str
) -> None:
    assert run_name(resolve(preset or "gym", changes, {}), preset, env) == name


def test_an_open_run_has_no_result_and_says_how_to_get_one() -> None:
    def stop(_: amago.Epoch) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        amago.train(tiny("wind"), run_dir="run", on_epoch=stop)
    run = amago.Run("run")
    assert repr(run) == "Run('run', amago/Wind-v0, epoch 1 of 2)"
    with pytest.raises(ValueError, match=r"not complete.*\.resume\(\)"):
        _ = run.result
    with pytest.raises(ValueError, match="is not a run"):
        _ = amago.Run("nowhere").config


def test_reprs_and_listings_are_short_and_name_what_there_is() -> None:
    assert set(dir(amago)) >= {"Config", "Epoch", "Predictor", "Run", "load", "override", "train"}
    assert all(hasattr(amago, name) for name in dir(amago))
    shown = repr(amago.preset("gym"))
    assert shown.startswith("Config(env.id='CartPole-v1', memory='transformer', run.epochs=60, and")
    metrics = {
        "epoch": 3,
        "rollout/return_mean": 1.23456,
        "eval/return_mean": 2.0,
        "loss/actor": 1.0,
    }
    told = amago.Epoch(Path("run"), 3, 20, metrics, {"seconds": 1.0})
    assert repr(told) == "Epoch(3 of 20, return 1.235, eval return 2)"
    program = "import amago, sys; dir(amago); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


class _Shell:
    kernel = object()


class _Shown:
    def __init__(self, pages: list[str]) -> None:
        self.pages = pages

    def update(self, page: str) -> None:
        self.pages.append(page)


def _notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A process that looks like the kernel of a notebook; what it was shown."""
    pages: list[str] = []

    def display(page: str, display_id: bool) -> _Shown:
        pages.append(page)
        return _Shown(pages)

    module, output = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython = _Shell  # type: ignore[attr-defined]
    output.HTML, output.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", output)
    return pages


def test_a_notebook_shows_progress_as_one_changing_page_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = _notebook(monkeypatch)
    assert isinstance(make_view(3), NotebookView)
    amago.train(tiny("wind"), run_dir="run<b>")
    assert 4 < len(pages) < 20 and capsys.readouterr().out == ""
    assert '<progress value="2" max="2">' in pages[-1] and "complete" in pages[-1]
    assert "<th>eval return</th>" in pages[-1] and "run&lt;b&gt;" in pages[-1]
    assert not any("\x1b" in page for page in pages)


def test_a_program_gets_plain_lines_and_may_ask_for_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not in_notebook() and isinstance(make_view(3), _PlainView)
    amago.train(tiny("wind"), run_dir="shown")
    assert "epoch 2/2 | return" in capsys.readouterr().out
    amago.train(tiny("wind"), run_dir="silent", progress=False)
    assert capsys.readouterr().out == ""


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Drawing takes longer than training here."""
    if "enough" not in request.node.name:
        monkeypatch.setattr(api, "plot_run", lambda *_: None)
