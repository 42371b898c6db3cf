"""Examples agree with the presets they start from, and play what they trained."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
from test_run_helpers import tiny

import amago
from amago import api
from amago.config import to_dict
from amago.envs.catalogue import PRESETS, TASKS, _task_arguments

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def _nodes(path: Path, kind: type) -> Iterator[Any]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kind))


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _presets(path: Path) -> list[str]:
    calls = [node for node in _nodes(path, ast.Call) if _called(node) == "amago.preset"]
    return [ast.literal_eval(call.args[0]) for call in calls]


def _settings(path: Path) -> dict[str, ast.expr]:
    """Entries of dictionaries whose keys are names of settings, such as "run.epochs"."""
    return {
        key.value: value
        for table in _nodes(path, ast.Dict)
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and "." in key.value
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_presets_and_settings_of_an_example_exist(path: Path) -> None:
    presets = _presets(path)
    assert presets and set(presets) <= set(PRESETS)
    for name in presets:
        known = to_dict(amago.preset(name))
        for key in _settings(path):
            group, _, setting = key.partition(".")
            assert setting in known[group], f"{path.name}: {name} has no setting {key}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_arguments_of_an_examples_environment_are_those_of_its_preset(path: Path) -> None:
    chosen = _settings(path).get("env.kwargs")
    if chosen is None:
        return
    given = ast.literal_eval(chosen)
    for name in _presets(path):
        env = amago.preset(name).env
        assert env.id in TASKS and set(given) <= set(_task_arguments(env.id))
        assert set(env.kwargs) <= set(given), "whatever the preset sets is replaced as a whole"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_writes_no_arguments_into_gym_make(path: Path) -> None:
    """They would drift from those of the preset: a run's settings say them."""
    for call in _nodes(path, ast.Call):
        if _called(call) == "gym.make":
            assert not any(isinstance(value, ast.Constant) for value in call.args)
            assert all(keyword.arg is None for keyword in call.keywords)


def _plain_loop() -> ModuleType:
    path = next(path for path in EXAMPLES if path.stem == "plain_loop")
    spec = importlib.util.spec_from_file_location("plain_loop", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_plain_loop_plays_the_environment_that_was_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    kwargs = {"grid": 3, "trial_limit": 7, "horizon": 11}
    amago.train(tiny("dark-key-to-door", {"env.kwargs": kwargs}), 0, tmp_path / "run")
    made: list[tuple[str, dict[str, Any]]] = []
    original = gym.make

    def make(name: Any, **given: Any) -> Any:
        if isinstance(name, str):
            made.append((name, given))
        return original(name, **given)

    monkeypatch.setattr(gym, "make", make)
    assert len(_plain_loop().play(str(tmp_path / "run"), worlds=2)) == 2
    assert made == [("amago/DarkKeyToDoor-v0", kwargs)]
