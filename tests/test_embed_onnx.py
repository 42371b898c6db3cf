"""Exported agents act as they do in amago: every memory, across episodes, beyond the context."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_run_helpers import command, tiny

import amago
from amago.envs.registry import make_vector
from amago.saved.source import find_source
from amago.serving.onnx import OnnxAgent

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.usefixtures("no_curves")

export = importlib.import_module("amago.cli.export")
STEPS = 300
SETTINGS = {
    "transformer": {"replay.context_length": 8},
    "gru": {"memory": "gru"},
    "feedforward": {"memory": "feedforward"},
}
FACTORED = ("bit-recall", "masked-recall")
"""Multi-binary actions, and multi-discrete ones under a mask."""

_EXPORT = """
import sys
from amago.cli import main
for run, file in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        main(["export", run, "--onnx", file])
    except SystemExit as end:
        assert not end.code, (run, end.code)
"""


def _export(files: dict[str | Path, Path]) -> None:
    """In a process of its own: shape checks of the tests do not go with tracing."""
    pairs = [str(path) for pair in files.items() for path in pair]
    program = [sys.executable, "-c", _EXPORT, *pairs]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout.count("largest difference") == len(files), done.stdout


def _compare(run: str | Path, file: Path) -> int:
    """Greedy actions and probabilities over many steps; how many episodes ended meanwhile."""
    exported, policy = OnnxAgent(file), amago.load(run, greedy=True)
    env = make_vector(find_source(run).config.env, seed=3, num_lanes=2)
    memory, state = exported.initial_memory(2), policy.policy.initial_state(2)
    rows, ended = env.reset(), 0
    for _ in range(STEPS):
        inputs = {f"obs/{key}": value for key, value in rows.obs.items()}
        for name in ("prev_action", "prev_reward", "time", "first"):
            inputs[name] = getattr(rows, name)
        if rows.instruction is not None:
            inputs |= {
                name: getattr(rows, name) for name in ("instruction", "num_goals", "progress")
            }
        said, memory = exported.step(inputs, memory)
        action, state = policy.policy.act(rows, state)
        if action.dtype.kind == "f":
            np.testing.assert_allclose(said["action"], action, atol=1e-4)
        else:
            best = said["probabilities"].max(-1)
            chosen = np.take_along_axis(said["probabilities"], action[..., None], -1)[..., 0]
            np.testing.assert_allclose(chosen, best, atol=1e-5)  # equal but for ties
        step = env.step(action)
        rows, ended = step.rows, ended + len(step.final_lanes)
    env.close()
    return ended


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its file for every memory; one process exports them all."""
    folder = tmp_path_factory.mktemp("exported")
    for memory, changes in SETTINGS.items():
        config = tiny("wind" if memory != "transformer" else "gym", changes)
        amago.train(config, 0, folder / memory, progress=False)
    for preset in FACTORED:
        amago.train(tiny(preset), 0, folder / preset, progress=False)
    _export({folder / name: folder / f"{name}.onnx" for name in (*SETTINGS, *FACTORED)})
    return folder


@pytest.mark.parametrize("memory", SETTINGS)
def test_an_exported_agent_acts_as_predict_does(memory: str, exported: Path) -> None:
    assert _compare(exported / memory, exported / f"{memory}.onnx") > 4
    about = OnnxAgent(exported / f"{memory}.onnx").about
    shapes = about["memory"]
    assert json.dumps(about) and set(shapes) == {
        "transformer": {"keys", "values", "last_row"}, "gru": {"hidden"}, "feedforward": set(),
    }[memory]  # fmt: skip
    if memory == "transformer":
        assert shapes["keys"][3] == 8, "the rollouts of this test are longer than the context"


@pytest.mark.parametrize("preset", FACTORED)
def test_actions_of_several_parts_are_exported_too(preset: str, exported: Path) -> None:
    assert _compare(exported / preset, exported / f"{preset}.onnx") > 4
    shape = OnnxAgent(exported / f"{preset}.onnx")._session.get_outputs()[0].shape
    assert len(shape) == 3, "probabilities [lanes, parts, values]"


@pytest.mark.parametrize(
    "memory",
    [
        "transformer",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gru", "feedforward")),
    ],
)
def test_an_agent_that_follows_instructions_is_exported_too(memory: str, tmp_path: Path) -> None:
    config = tiny("package-delivery", SETTINGS[memory])
    amago.train(config, 0, tmp_path / "run", progress=False)
    _export({tmp_path / "run": tmp_path / "agent.onnx"})
    assert _compare(tmp_path / "run", tmp_path / "agent.onnx") > 4


@pytest.mark.slow
def test_an_agent_of_the_zoo_is_exported_too(tmp_path: Path) -> None:
    file = tmp_path / "agent.onnx"
    _export({"zoo:dark-key-to-door": file})
    assert _compare("zoo:dark-key-to-door", file) > 0


def test_a_bare_flag_names_the_file_after_the_agent() -> None:
    named = ["zoo:door", "--onnx=door.onnx"]
    assert export._with_file(["zoo:door", "--onnx"]) == named
    assert export._with_file(["zoo:door", "--onnx", "--trust"]) == [*named, "--trust"]
    for whole in (["runs/door", "--onnx", "x.onnx"], ["--onnx", "x.onnx", "runs/door"]):
        assert export._with_file(whole) == whole


def test_the_file_must_be_called_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = command(capsys, "export", "zoo:dark-key-to-door", "--onnx", "agent.pt")
    assert code == 2 and "--onnx takes a file that ends in .onnx" in error


def test_a_file_that_cannot_be_written_is_refused_before_the_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.onnx").mkdir()
    for target in (tmp_path / "file" / "x.onnx", tmp_path / "folder.onnx"):
        code, _, error = command(capsys, "export", "zoo:dark-key-to-door", "--onnx", target)
        assert code == 2 and "cannot be written" in error and "choose another file" in error
