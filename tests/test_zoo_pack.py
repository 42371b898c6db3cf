"""A run as one file: what it keeps, what it refuses, and that it plays like the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from test_run_helpers import command, tiny

import amago
from amago import api
from amago.config import override
from amago.saved import packed
from amago.saved.source import find_source
from amago.training.start import create
from amago.zoo.pack import pack

SHORT = {"env.kwargs": {"corridor": 4}, "env.ids": (), "run.epochs": 2, "run.eval_interval": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "plot_run", lambda *_, **__: None)
        api.train(tiny("t-maze", SHORT), 3, folder, preset="t-maze")
    return folder


@pytest.fixture(scope="module")
def file(run: Path) -> Path:
    out = run.parent / "agent.safetensors"
    pack(run, out, also=[run], controls={"no memory": run}, cannot=["swim"])
    return out


def _changed(file: Path, to: Path, **changes: Any) -> Path:
    """The same file with entries of its card replaced."""
    from safetensors import safe_open

    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    card = {**json.loads(metadata["card"]), **changes}
    save_file(load_file(file), to, {**metadata, "card": json.dumps(card)})
    return to


def _header(file: Path, **settings: Any) -> dict[str, Any]:
    header = packed.read_card(file).header
    config = override(find_source(file).config, settings)
    return {**header, "config": json.loads(json.dumps(amago.config.to_dict(config)))}


def test_a_packed_agent_plays_exactly_as_its_run_does(run: Path, file: Path) -> None:
    env = find_source(run).config.env
    results = [
        amago.evaluate(amago.load(source, seed=1), env, 20, seed=5) for source in (run, file)
    ]
    assert results[0] == results[1]


def test_target_copies_are_not_stored_and_begin_as_what_they_follow(file: Path) -> None:
    assert not [name for name in load_file(file) if name.startswith("target_")]
    agent = amago.load(file).policy.agent
    for target, online in (
        (agent.target_actor, agent.actor),
        (agent.target_critics, agent.critics),
    ):
        for ours, theirs in zip(target.parameters(), online.parameters(), strict=True):
            assert torch.equal(ours, theirs)


def test_float16_halves_the_file(run: Path, file: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.safetensors"
    pack(run, small, half=True)
    assert small.stat().st_size < 0.65 * file.stat().st_size
    exact, rounded = (amago.load(path).policy.agent.state_dict() for path in (file, small))
    worst = max(float((exact[name] - rounded[name]).abs().max()) for name in exact)
    assert 0 < worst < 2e-3


def test_the_card_has_command_scores_curve_seeds_and_limits(run: Path, file: Path) -> None:
    card = packed.read_card(file)
    result = json.loads((run / "result.json").read_text())
    assert card.result == result
    assert card.command.startswith("amago train t-maze --seed 3 ")
    assert "--env.kwargs.corridor 4" in card.command and "--run.epochs 2" in card.command
    assert len(card.curve) == 2 and card.curve[-1][0] == result["env_steps"]
    assert card.seeds == {"3": result["return_mean"]}
    assert card.controls == {"no memory": result["return_mean"]}
    assert card.cannot[0] == "swim" and "corridor=4" in card.cannot[1]


def test_a_packed_agent_is_evaluated_shown_and_started_from_like_a_run(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capsys, "eval", file, "--episodes", 4, "--json")
    assert code == 0, err
    assert json.loads(out)["episodes"] == 4
    code, out, _ = command(capsys, "zoo", file)
    assert code == 0 and "amago train t-maze" in out
    config = override(tiny("t-maze", SHORT), {"run.start_from": str(file)})
    started = create(tmp_path / "new", config, seed=0)
    try:
        ours = amago.load(file).policy.agent.state_dict()
        assert all(torch.equal(ours[k], v) for k, v in started.agent.state_dict().items())
    finally:
        started.close()


def test_absurd_sizes_are_refused_before_anything_is_built(file: Path, tmp_path: Path) -> None:
    header = _header(file, **{"transformer.model_dim": 2**20})
    with pytest.raises(ValueError, match="does not fit its own configuration"):
        amago.load(_changed(file, tmp_path / "x.safetensors", header=header))
    header = _header(file, **{"env.kwargs": {"corridor": 10**9}})
    with pytest.raises(ValueError, match="numbers up to"):
        amago.load(_changed(file, tmp_path / "y.safetensors", header=header))


def test_an_environment_whose_id_would_import_a_module_is_refused(
    file: Path, tmp_path: Path
) -> None:
    header = _header(file, **{"env.id": "antigravity:Fly-v0"})
    with pytest.raises(ValueError, match="would import a module"):
        amago.load(_changed(file, tmp_path / "x.safetensors", header=header))


def test_unknown_keys_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a card with"):
        amago.load(_changed(file, tmp_path / "x.safetensors", code="print(1)"))
    header = _header(file)
    header["config"]["trojan"] = {}
    with pytest.raises(ValueError, match="trojan"):
        amago.load(_changed(file, tmp_path / "y.safetensors", header=header))
    extra = {**load_file(file), "extra": torch.zeros(3)}
    from safetensors import safe_open

    with safe_open(file, "pt") as opened:
        save_file(extra, tmp_path / "z.safetensors", opened.metadata())
    with pytest.raises(ValueError, match="extra"):
        amago.load(tmp_path / "z.safetensors")


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("curve", [["a", 1]]),
        ("result", {"return_mean": "high"}),
        ("seeds", {"0": None}),
        ("cannot", [3]),
        ("command", 7),
        ("header", []),
    ],
)
def test_cards_that_cannot_be_read_are_refused(
    file: Path, tmp_path: Path, entry: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=entry):
        amago.load(_changed(file, tmp_path / "x.safetensors", **{entry: value}))


def test_a_card_cannot_speak_to_the_terminal(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cannot = ["\x1b]0;owned\x07", "[link=file:///etc/passwd]click[/link]"]
    path = _changed(file, tmp_path / "x.safetensors", cannot=cannot)
    code, out, _ = command(capsys, "zoo", path)
    assert code == 0 and "\x1b" not in out and "\x07" not in out
    assert "[link=file:///etc/passwd]click[/link]" in out.replace("\n", "")


def test_sizes_hidden_in_one_of_several_tasks_are_refused(file: Path, tmp_path: Path) -> None:
    header = _header(file, **{"env.ids": ("amago/TMaze-v0?corridor=1000000000",)})
    with pytest.raises(ValueError, match="numbers up to"):
        amago.load(_changed(file, tmp_path / "x.safetensors", header=header))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", b"\xff" * 64])
def test_what_is_no_packed_agent_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a packed agent"):
        amago.load(path)


def test_a_checkpoint_alone_is_no_packed_agent(run: Path) -> None:
    with pytest.raises(ValueError, match="amago pack"):
        amago.load(find_source(run).path / "model.safetensors")


def test_an_unfinished_run_is_not_packed(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    import shutil

    shutil.copytree(run, folder)
    (folder / "result.json").unlink()
    with pytest.raises(ValueError, match="amago resume"):
        pack(folder, tmp_path / "x.safetensors")


def test_names_outside_the_zoo_do_not_reach_files() -> None:
    with pytest.raises(ValueError, match="no agent of the zoo is called"):
        amago.load("zoo:../../presets")


def test_a_packed_agent_predicts_actions(file: Path) -> None:
    """Predicting works as with a run: one observation in, one action out."""
    action, state = amago.load(file).predict(np.zeros(2, np.float32))
    assert 0 <= int(action) < 4 and state.time.tolist() == [1]
