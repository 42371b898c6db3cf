"""The parts of `amago bench scale` that take a second; the others start many processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amago.bench import scale
from amago.bench.conditions import QUICK, Bench
from amago.bench.scale_model import Costs, acting_seconds, forecasts, is_computed
from amago.bench.suite import CASES

BENCH = Bench(effort=QUICK, quick=True)


def test_storing_is_measured_in_rollouts_and_bytes() -> None:
    results, seconds = scale._ingest(BENCH, 8)
    assert [result.unit for result in results] == ["trajectories/s", "MB/s"]
    assert results[0].value == pytest.approx(scale._LANES / seconds)


def test_weights_are_measured_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SIZES", ("tiny",))
    learner, collector = scale._broadcast(BENCH)
    assert learner.setting.endswith("learner") and collector.setting.endswith("collector")
    assert "ms" in learner.note


def test_the_case_is_known_and_its_aim_is_written_down() -> None:
    assert CASES["scale"] is scale.run
    assert (scale._LINEAR, scale._COLLECTORS[-1], scale._SLEEP_SECONDS) == (0.9, 16, 0.05)


COSTS = Costs(lanes=4, acting=0.02, storing=0.003, calling=0.001)


def test_the_model_multiplies_what_one_collector_does() -> None:
    assert COSTS.steps_per_second(0.02) == pytest.approx(40)
    # 100 collectors: 4,000 steps, 40 rollouts and 10 shares per second, of 4 ms each.
    assert COSTS.ingest_load(100, 0.02) == pytest.approx(0.04)
    assert COSTS.most_collectors(0.02) == pytest.approx(2500)
    assert acting_seconds(40, 4, 0.02) == pytest.approx(0.02)


def test_forecasts_stop_where_the_ingest_thread_does() -> None:
    slow = replace(COSTS, storing=0.3)
    rows = {row.setting: row for row in forecasts(slow, "large")}
    assert all(is_computed(row) for row in rows.values()) and len(rows) == 2 * 4
    few = rows["computed: 10 collectors, 50 ms a step, large"]
    assert few.value == pytest.approx(10 * 4 / 0.22) and few.ratio == 1
    many = rows["computed: 1,000 collectors, 1 ms a step, large"]
    # A share of 400 steps every .301 seconds, however many collectors there are.
    assert many.value == pytest.approx(400 / 0.301)
    assert "which is the limit" in many.note and "limit" not in few.note
