"""The parts of `amago bench scale` that take a second; the others start many processes."""

from __future__ import annotations

import pytest

from amago.bench import scale
from amago.bench.conditions import QUICK, Bench
from amago.bench.suite import CASES

BENCH = Bench(effort=QUICK, quick=True)


def test_storing_is_measured_in_rollouts_and_bytes() -> None:
    results = scale._ingest(BENCH)
    assert [result.unit for result in results] == ["trajectories/s", "MB/s"] * 2
    assert all(result.value for result in results)


def test_weights_are_measured_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SIZES", ("tiny",))
    learner, collector = scale._broadcast(BENCH)
    assert learner.setting.endswith("learner") and collector.setting.endswith("collector")
    assert "ms" in learner.note


def test_the_case_is_known_and_its_aim_is_written_down() -> None:
    assert CASES["scale"] is scale.run
    assert (scale.LINEAR, scale.COLLECTORS[-1], scale.SLEEP_SECONDS) == (0.9, 16, 0.05)
