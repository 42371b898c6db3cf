"""The doctor: every rule has a run that provokes it and one that does not."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_run_helpers import command, lines, tiny

import amago
from amago import api
from amago.agent.metrics import entropy_share
from amago.config import override
from amago.doctor.history import History, mean_age
from amago.doctor.rules import RULES, diagnose
from amago.nets.distributions import LOG_STD_RANGE, FlooredCategorical, TanhGaussian
from amago.types import ActionSpec

Rows = list[dict[str, Any]]
CONFIG = override(
    amago.preset("t-maze"),
    {"run.epochs": 30, "optim.grad_clip": 1.0, "terms.cloning.filter": "binary",
     "terms.cloning.weight": 0.1, "agent.reward_scale": 10.0, "replay.context_length": 100},
)  # fmt: skip


def healthy() -> Rows:
    """Thirty epochs of a run that learns; every fifth is evaluated."""
    rows: Rows = []
    for epoch in range(1, 31):
        row: dict[str, Any] = {
            "epoch": epoch, "rollout/return_mean": 0.02 * epoch, "rollout/return_std": 0.5,
            "rollout/length_mean": 100.0, "rollout/episodes": 96, "replay/added": 96,
            "replay/trajectories": 96 * min(epoch, 20), "policy/entropy_share": 1 / epoch,
            "cloning/accepted": 0.4, "grad/norm": 1.5, "grad/clipped": 0.7,
            "value/q@0.99": 0.1 * epoch, "learner/skipped": 0,
        }  # fmt: skip
        if epoch % 5 == 0:
            row |= {
                "eval/return_mean": 0.02 * epoch + 0.1, "eval/return_std": 0.5,
                "eval/episodes": 64, "eval/success_rate": 0.03 * epoch,
            }  # fmt: skip
        if epoch == 5:
            row |= {"random/return_mean": 0.0, "random/return_std": 0.5, "random/episodes": 64}
        rows.append(row)
    return rows


def always(**values: Any) -> Callable[[Rows], None]:
    """The same values in every row that has them."""

    def change(rows: Rows) -> None:
        for row in rows:
            row |= {key: value for key, value in values.items() if key in row}

    return change


def _longer_rollouts(rows: Rows) -> None:
    """Rollouts become twenty times longer, so that the first epochs fill the replay."""
    for row in rows:
        row |= {"replay/added": 960 if row["epoch"] <= 3 else 40, "replay/trajectories": 2000}


def _shorter_rollouts(rows: Rows) -> None:
    for row in rows:
        row |= {"replay/added": 96 if row["epoch"] <= 3 else 1000, "replay/trajectories": 2000}


PROVOKE: dict[str, list[Callable[[Rows], None]]] = {
    "below-random": [always(**{"eval/return_mean": -0.1, "rollout/return_mean": -0.2})],
    "entropy": [always(**{"policy/entropy_share": 0.001, "eval/success_rate": 0.5})],
    "values": [always(**{"value/q@0.99": -5000.0})],
    "cloning": [always(**{"cloning/accepted": 0.001}), always(**{"cloning/accepted": 0.999})],
    "clipping": [always(**{"grad/clipped": 1.0, "grad/norm": 40.0})],
    "context": [always(**{"rollout/length_mean": 130.0})],
    "replay-age": [_longer_rollouts, _shorter_rollouts],
    "skipped": [always(**{"learner/skipped": 3})],
    "evaluation": [always(**{"eval/return_mean": 0.2, "rollout/return_mean": 0.9})],
}
HARMLESS: dict[str, Callable[[Rows], None]] = {
    "below-random": always(**{"eval/return_mean": 0.4}),
    "entropy": always(**{"policy/entropy_share": 0.001, "eval/success_rate": 1.0}),
    "values": always(**{"value/q@0.99": 9.0}),
    "cloning": always(**{"cloning/accepted": 0.001, "eval/success_rate": 1.0}),
    "clipping": always(**{"grad/clipped": 1.0, "grad/norm": 1.2}),
    "context": always(**{"rollout/length_mean": 100.0}),
    "replay-age": always(**{"replay/added": 48}),
    "skipped": always(**{"learner/skipped": 0}),
    "evaluation": always(**{"eval/return_mean": 0.8, "rollout/return_mean": 0.9}),
}


def test_nothing_is_found_in_a_healthy_run() -> None:
    assert diagnose(healthy(), CONFIG) == []
    assert diagnose([], CONFIG) == []
    assert diagnose([{"epoch": 1}], CONFIG) == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_finds_what_goes_wrong_and_nothing_else_does(name: str) -> None:
    for provoke in PROVOKE[name]:
        rows = healthy()
        provoke(rows)
        (finding,) = diagnose(rows, CONFIG)
        assert finding.name == name and finding.epoch == 30
        assert finding.flag in finding.sentence and finding.flag.startswith("--")
        assert "\n" not in finding.sentence


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_silent_where_all_is_well(name: str) -> None:
    rows = healthy()
    HARMLESS[name](rows)
    assert diagnose(rows, CONFIG) == []


def test_flags_of_findings_are_settings() -> None:
    from amago.config import dotted

    known = {f"--{key.replace('_', '-')}" for key in dotted(CONFIG)}
    for provokes in PROVOKE.values():
        rows = healthy()
        provokes[0](rows)
        assert {finding.flag for finding in diagnose(rows, CONFIG)} <= known


def test_early_evaluations_are_not_held_against_a_run() -> None:
    rows = healthy()
    PROVOKE["below-random"][0](rows)
    assert "below-random" not in {finding.name for finding in diagnose(rows[:9], CONFIG)}


def test_a_final_test_below_random_play_counts_more_than_evaluations() -> None:
    result = {
        "return_mean": 1.68, "return_std": 0.5, "episodes": 200,
        "reference_scores": {"random": {"return_mean": 1.98, "return_std": 0.5}},
    }  # fmt: skip
    (finding,) = diagnose(healthy(), CONFIG, result)
    assert finding.name == "below-random"
    assert "1.68" in finding.sentence and "1.98" in finding.sentence
    better = {**result, "return_mean": 2.5}
    assert diagnose(healthy(), CONFIG, better) == []


def test_rules_for_settings_that_are_off_stay_silent() -> None:
    rows = healthy()
    PROVOKE["cloning"][0](rows)
    PROVOKE["context"][0](rows)
    off = override(CONFIG, {"terms.cloning.weight": 0.0, "memory": "feedforward"})
    assert diagnose(rows, off) == []
    everything = override(CONFIG, {"terms.cloning.filter": "none", "replay.context_length": None})
    assert diagnose(rows, everything) == []


def test_the_age_of_the_replay_is_that_of_what_it_holds() -> None:
    rows = [{"epoch": n, "replay/added": 10, "replay/trajectories": 20} for n in (1, 2, 3, 4)]
    assert mean_age(rows) == 0.5  # ten of this epoch, ten of the last
    assert mean_age(rows[:1]) == 0.0 and mean_age([{"epoch": 1}]) is None
    assert History(rows, CONFIG).epoch == 4


def test_entropy_is_a_share_of_the_largest() -> None:
    logits = torch.zeros(5, 4)
    discrete = ActionSpec("discrete", 4)
    assert entropy_share(FlooredCategorical(logits).entropy(), discrete).item() == pytest.approx(1)
    mask = torch.tensor([[True, True, False, False]]).expand(5, 4)
    masked = FlooredCategorical(logits, mask=mask).entropy()
    assert entropy_share(masked, discrete, mask).item() == pytest.approx(1)
    decided = FlooredCategorical(100 * torch.eye(4)).entropy()
    assert entropy_share(decided, discrete).item() == pytest.approx(0, abs=1e-6)
    assert entropy_share(torch.tensor([2 * np.log(2)]), ActionSpec("multi_binary", 2)).item() == 1.0
    sizes = ActionSpec("multi_discrete", 5, (2, 3))
    assert entropy_share(torch.tensor([np.log(6.0)]), sizes).item() == pytest.approx(1)
    low = TanhGaussian(torch.tensor([[0.0, 0.0, -50.0, -50.0]])).entropy()
    middle = TanhGaussian(torch.zeros(1, 4)).entropy()
    assert LOG_STD_RANGE[0] < 0 < LOG_STD_RANGE[1]
    assert entropy_share(low, ActionSpec("continuous", 2)).item() == pytest.approx(0, abs=1e-6)
    assert entropy_share(middle, ActionSpec("continuous", 2)).item() == pytest.approx(0.5)


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str]]:
    """A run that is clipped always and sees too little of its past, and its warnings."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    changes = {"optim.grad_clip": 1e-6, "replay.context_length": 3, "run.epochs": 8,
               "run.eval_interval": 2}  # fmt: skip
    folder = tmp_path_factory.mktemp("troubled") / "run"
    logging.getLogger("amago").addHandler(handler)
    try:
        api.train(tiny("wind", changes), 0, folder)
    finally:
        logging.getLogger("amago").removeHandler(handler)
    return folder, said


def test_a_run_warns_while_it_goes_on_once_of_each(troubled) -> None:
    folder, said = troubled
    assert sum("always clipped" in line for line in said) == 1
    assert sum("context is shorter" in line for line in said) == 1
    assert said[0].startswith("epoch 1: the context")
    rows = lines(folder)
    assert rows[-1]["grad/clipped"] == 1.0 and 0 < rows[-1]["policy/entropy_share"] <= 1
    assert rows[-1]["replay/added"] == 3 and rows[-1]["replay/age"] == 3.5
    assert ["random/return_mean" in row for row in rows] == [number == 1 for number in range(8)]


def test_a_resumed_run_does_not_repeat_its_warnings(troubled, caplog) -> None:
    folder, _ = troubled
    api.resume(folder, epochs="+2")
    assert not [r for r in caplog.records if "clipped" in r.message or "context" in r.message]
    assert sum("random/return_mean" in row for row in lines(folder)) == 1


def test_the_doctor_says_what_to_look_at(troubled, capsys) -> None:
    folder, _ = troubled
    code, out, _ = command(capsys, "doctor", folder)
    text = " ".join(out.split())
    assert code == 1 and "--optim.grad-clip" in text and "--replay.context-length" in text
    code, out, _ = command(capsys, "doctor", folder, "--json")
    assert {"clipping", "context"} <= {finding["name"] for finding in json.loads(out)}
    code, _, err = command(capsys, "doctor", folder / "nothing")
    assert code == 2 and "expected a run folder" in err


def test_the_doctor_finds_nothing_in_a_run_without_faults(tmp_path, capsys) -> None:
    folder = tmp_path / "run"
    rows = [json.dumps(row) for row in healthy()]
    folder.mkdir()
    header = {"preset": "t-maze", "seed": 0, "config": amago.config.to_dict(CONFIG)}
    (folder / "config.json").write_text(json.dumps(header))
    code, out, _ = command(capsys, "doctor", folder)
    assert code == 0 and "has not finished an epoch" in " ".join(out.split())
    (folder / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    code, out, _ = command(capsys, "doctor", folder)
    assert code == 0 and "nothing found in 30 epochs by 9 rules" in out


def test_every_finding_has_a_section_in_the_docs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "diagnosis.md").read_text()
    sections = re.findall(r"^### `([\w-]+)`", page, re.MULTILINE)
    assert sections == list(RULES)
    for name in RULES:
        text = page.split(f"### `{name}`")[1].split("### ")[0]
        rows = healthy()
        PROVOKE[name][0](rows)
        (finding,) = diagnose(rows, CONFIG)
        assert finding.flag in text
