"""What a run logs for figures: values of every discount, activations, success by length."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_run_helpers import lines, tiny

from amago import api
from amago.nets.memory.diagnose import activation_maxima, diagnose
from amago.nets.memory.transformer import TransformerMemory
from amago.nets.sequences import Sequences
from amago.nets.settings import TransformerSettings
from amago.rollout.scores import success_by_length
from amago.rollout.stats import RolloutRecord
from amago.saved.header import read_config

pytestmark = pytest.mark.usefixtures("no_curves")

PLANNED = {"run.epochs": 4, "run.eval_interval": 2, "agent.discounts": (0.5, 0.9, 0.99),
           "agent.acting_discount": 0.9}  # fmt: skip


def test_values_of_all_discounts_and_activations_at_evaluations_are_logged(tmp_path: Path) -> None:
    result = api.train(tiny("package-delivery", PLANNED), 0, tmp_path / "run").result
    first, *rest = lines(tmp_path / "run")
    assert not [key for key in first if key.startswith("value/")], "nothing was learned yet"
    for row in rest:
        values = [key for key in row if key.startswith("value/q@")]
        assert values == ["value/q@0.9", "value/q@0.5", "value/q@0.99"], "the acting one first"
        assert len({row[key] for key in values}) == 3
        activations = {key for key in row if key.startswith("activation/")}
        known = {f"activation/{name}" for name in ("residual", "query", "key", "value")}
        assert activations == (known if row["epoch"] % 2 == 0 else set())
    lengths = result["success_by_length"]
    assert set(lengths) <= {"2", "3", "4"}
    assert sum(row["episodes"] for row in lengths.values()) == result["episodes"]


def test_an_agent_without_a_transformer_logs_no_activations(tmp_path: Path) -> None:
    api.train(tiny("t-maze", {"memory": "gru"}), 0, tmp_path / "run")
    assert not [key for row in lines(tmp_path / "run") for key in row if "activation" in key]


def test_a_run_that_is_out_of_minutes_ends_complete(tmp_path: Path) -> None:
    api.train(tiny("t-maze", {"run.epochs": 50, "run.max_minutes": 0.0}), 0, tmp_path / "run")
    assert len(lines(tmp_path / "run")) == 1 and (tmp_path / "run" / "result.json").is_file()
    assert read_config(tmp_path / "run").run.epochs == 50
    with pytest.raises(ValueError, match=r"--run\.max-minutes must be at least 0"):
        tiny("t-maze", {"run.max_minutes": -1.0})


@pytest.mark.parametrize("previous", [False, True])
def test_maxima_are_those_of_the_blocks(previous: bool) -> None:
    torch.manual_seed(0)
    settings = TransformerSettings(
        model_dim=16, num_heads=2, num_layers=2, previous_row=previous, sigma_reparam=False
    )
    memory = TransformerMemory(4, settings, context_length=8, horizon=8).train()
    x, time = torch.randn(6, 4), torch.arange(6)
    found = activation_maxima(memory, x, time, Sequences((6,), torch.device("cpu")))
    assert memory.training
    layers = diagnose(memory, x, time)
    want = max(layer.activation_max for layer in layers)
    assert found["residual"] == pytest.approx(want, rel=1e-5)
    assert set(found) == {"residual", "query", "key", "value"} and min(found.values()) > 0
    with torch.no_grad():
        memory.blocks[1].attention.qkv.weight.mul_(100.0)
    larger = activation_maxima(memory, x, time, Sequences((6,), torch.device("cpu")))
    assert larger["query"] > 5 * found["query"]


def _record(num_goals: int | None, success: bool | None) -> RolloutRecord:
    return RolloutRecord("task", 0, 1.0, 3, success, None, 0, num_goals=num_goals)


def test_success_by_length_counts_what_is_known() -> None:
    records = [_record(1, True), _record(1, False), _record(3, True), _record(3, None)]
    assert success_by_length([*records, _record(None, True)]) == {
        "1": {"success_rate": 0.5, "episodes": 2},
        "3": {"success_rate": 1.0, "episodes": 1},
    }
