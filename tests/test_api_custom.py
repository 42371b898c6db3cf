"""The examples run, and what they show holds: own classes train, resume and load."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from datetime import datetime, tzinfo
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from test_docs_helpers import fast_world
from test_run_helpers import command, differing, evidence, tiny

import amago
from amago import api, arguments
from amago.agent.terms import Term
from amago.nets.sequences import Sequences
from amago.presets.sizes import SIZES
from amago.saved.header import read_config
from amago.training.start import create

EXAMPLES = Path(__file__).parent.parent / "examples"
CUSTOM = {
    "encoder": ("custom_encoder", "FourierEncoder"),
    "memory": ("custom_memory", "PeakMemory"),
    "env": ("custom_env", "HiddenArm"),
}


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _custom(kind: str) -> dict[str, Any]:
    module, name = CUSTOM[kind]
    return {kind: getattr(_example(module), name)}


class StopError(Exception):
    """Ends a run after its first checkpoint."""


@pytest.mark.parametrize("kind", CUSTOM)
def test_a_class_of_ones_own_trains_and_is_needed_to_resume_and_load(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tiny("gym" if kind == "env" else "wind", {"run.epochs": 3, "run.save_interval": 1})
    own = _custom(kind)
    result = amago.train(config, 0, tmp_path / "whole", **own).result
    assert result["updates"] == 4

    learn, calls = api.loop.learn_epoch, iter([True, False])
    with monkeypatch.context() as patch, pytest.raises(StopError):

        def stop(*arguments: Any) -> Any:
            if next(calls):
                return learn(*arguments)
            raise StopError

        patch.setattr(api.loop, "learn_epoch", stop)
        amago.train(config, 0, tmp_path / "run", **own)

    name = CUSTOM[kind][1]
    for without in (lambda: amago.resume(tmp_path / "run"), lambda: amago.load(tmp_path / "run")):
        with pytest.raises(ValueError, match=f"{kind}={name}.*amago.resume.*amago.load"):
            without()
    code, _, err = command(capsys, "resume", tmp_path / "run")
    assert code == 2 and name in err and "from Python" in err

    amago.resume(tmp_path / "run", **own)
    assert differing(tmp_path / "run", tmp_path / "whole") == []
    policy = amago.load(tmp_path / "run", **own)
    env = own.get("env", config.env)
    assert amago.evaluate(policy, env, 3)["episodes"] == 3


class RewardModel(Term):
    """A term with a network of its own."""

    name, weight = "reward_model", 0.5

    def build(self, agent: Any) -> None:
        self.network = torch.nn.Linear(agent.memory.output_dim, 1)

    def loss(self, transitions: Any) -> torch.Tensor:
        return (self.network(transitions.actor_state)[:, 0] - transitions.reward).square()


class Offset(Term, torch.nn.Module):
    """A term that is a torch module itself."""

    name, weight = "offset", 1.0

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.nn.Parameter(torch.full((), 5.0))

    def loss(self, transitions: Any) -> torch.Tensor:
        return (self.value - transitions.reward).square()


def test_loss_terms_of_ones_own_are_trained_logged_saved_and_needed_again(tmp_path: Path) -> None:
    config = tiny("wind", {"run.epochs": 3, "run.save_interval": 1})
    folder = tmp_path / "run"
    amago.train(config, 0, folder, terms=[RewardModel(), Offset()])
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"loss/reward_model", "loss/offset", "loss/critic"} <= last.keys()
    saved = load_file(max(folder.glob("checkpoints/*/model.safetensors")))
    assert "term_networks.reward_model.weight" in saved
    assert float(saved["term_networks.offset.value"]) != 5.0
    with pytest.raises(ValueError, match=r"terms=\[RewardModel\(\), Offset\(\)\]"):
        amago.load(folder)
    offset = Offset()
    policy = amago.load(folder, terms=[RewardModel(), offset])
    assert torch.equal(offset.value.detach(), saved["term_networks.offset.value"])
    assert amago.evaluate(policy, config.env, 3)["episodes"] == 3


@pytest.mark.parametrize("kind", CUSTOM)
def test_the_code_of_a_custom_part_is_short(kind: str) -> None:
    """The promise is at most 20 lines of the user's own."""
    module, name = CUSTOM[kind]
    tree = ast.parse((EXAMPLES / f"{module}.py").read_text())
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    source = (EXAMPLES / f"{module}.py").read_text().splitlines()
    body = source[cls.lineno - 1 : cls.end_lineno]
    code = [line for line in body if line.strip() and not line.strip().startswith('"""')]
    assert len(code) <= 20, f"{len(code)} lines"


def test_the_custom_memory_of_the_example_acts_as_it_was_trained() -> None:
    memory = _custom("memory")["memory"](5, context_length=8, horizon=8)
    x = torch.randn(2, 8, 5)
    state, states = memory.initial_state(2), []
    state += 9.0  # must not matter: time 0 clears it
    for t in range(8):
        out, state = memory.step(x[:, t], torch.full((2,), t), state)
        states.append(out)
    rows, time = torch.cat((x[0], x[1, :6])), torch.tensor([*range(8), *range(6)])
    first, second = memory(rows, time, Sequences([8, 6])).split([8, 6])
    acted = torch.stack(states, 1)
    torch.testing.assert_close(acted[0], first)
    torch.testing.assert_close(acted[1, :6], second)


def test_parts_that_a_run_did_not_have_are_refused(tmp_path: Path) -> None:
    """A memory passed to a run that was trained without one cannot be meant."""
    amago.train(tiny("wind"), 0, tmp_path / "run")
    before = evidence(tmp_path / "run")
    with pytest.raises(ValueError, match="memory"):
        amago.load(tmp_path / "run", **_custom("memory"))
    assert evidence(tmp_path / "run") == before


LONG = "long_corridor"
"""An example of hours, which has a test of its own."""


RUN = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {LONG})


def _run_example(name: str) -> None:
    short = [] if name == "plain_loop" else ["--epochs", "2"]  # the first epoch only collects
    source = compile((EXAMPLES / f"{name}.py").read_text(), name, "exec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *short])
        exec(source, {"__name__": "__main__", "__doc__": ""})


@pytest.mark.parametrize("name", RUN)
def test_every_example_runs_with_tiny_networks(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fast_world(tmp_path):
        _run_example(name)
    out = capsys.readouterr().out
    assert "return" in out or out.startswith("["), out


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_every_example_runs_at_its_own_size(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run_example(name)
    out = capsys.readouterr().out
    assert "return" in out or out.startswith("["), out


def test_the_plain_loop_plays_a_run_that_is_given(tmp_path: Path) -> None:
    config = tiny("dark-key-to-door")
    amago.train(config, 0, tmp_path / "run")
    returns = _example("plain_loop").play(str(tmp_path / "run"), worlds=2)
    assert len(returns) == 2 and all(total >= 0 for total in returns)


def test_the_stages_of_the_long_corridor_begin_with_what_was_learned_and_go_on_when_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = _example(LONG)
    tiny_run = {"env.num_lanes": 3, "env.eval_lanes": 3, "replay.batch_size": 2}
    tiny_run |= {"run.epochs": 2, "run.eval_episodes": 3, "run.final_eval_episodes": 3}
    tiny_run |= {"run.updates_per_epoch": 2, **SIZES["tiny"].settings()}
    first = {"env.ids": ("amago/TMaze-v0?corridor=3", "amago/TMaze-v0?corridor=4")}
    stages = {4: tiny_run | first, 6: tiny_run, 8: tiny_run}
    monkeypatch.setattr(example, "CORRIDORS", (3, 6, 8))
    monkeypatch.setattr(example, "STAGES", stages)
    create(tmp_path / "t-maze-4" / "seed-1", example.stage(4, None), seed=1).close()  # stopped
    example.main(tmp_path, seed=1, longest=6)
    before = evidence(tmp_path / "t-maze-4" / "seed-1")
    example.main(tmp_path, seed=1, longest=8)
    assert evidence(tmp_path / "t-maze-4" / "seed-1") == before

    runs = [tmp_path / f"t-maze-{corridor}" / "seed-1" for corridor in stages]
    configs = [read_config(run) for run in runs]
    assert [config.run.start_from for config in configs] == ["", str(runs[0]), str(runs[1])]
    assert [config.env.ids[-1][-1] for config in configs] == ["4", "6", "8"]
    out = capsys.readouterr().out
    assert all(f"corridors up to {corridor}: " in out for corridor in stages), out


def test_runs_that_start_in_the_same_second_get_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Noon:
            return cls(2026, 1, 1, 12)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arguments, "datetime", Noon)
    names = []
    for _ in range(3):
        folder = arguments.new_run_dir("a/b", seed=1)
        folder.mkdir(parents=True)
        names.append(folder.name)
    stamp = "a-b-seed1-20260101-120000"
    assert names == [stamp, f"{stamp}-2", f"{stamp}-3"]
