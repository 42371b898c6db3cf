"""Every case of the bench at tiny size: the numbers it must deliver, from the code it measures."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_run_helpers import tiny

from amago.bench import learner, matmul, memory, relabeling, replay, rollout, start
from amago.bench.child import _TASKS
from amago.bench.conditions import Bench
from amago.bench.processes import environment, in_child
from amago.bench.results import Result, Target, duration, rate
from amago.bench.synthetic import Size, make_batch, spec_of, uniform_lengths
from amago.bench.timing import Effort, Timing
from amago.config import override
from amago.process import memory_of_process, peak_bytes

torch.set_num_threads(1)

TINY = Size(16, 1, (16,), 4, 12, num_heads=2, head_hidden=(8,))
BENCH = Bench(effort=Effort(1, 1, 0.001))
LINUX = Path("/proc/self/status").exists()


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul.multiplication, "__defaults__", ("cpu", 32))
    monkeypatch.setattr(matmul.flops, "__defaults__", (32,))


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children take seconds to start; two tests below start real ones."""

    def answer(task: str, payload: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(json.dumps(_TASKS[task](json.loads(json.dumps(payload)))))
        return made

    monkeypatch.setattr(learner, "limit_memory", lambda limit: limit)
    for module in (learner, memory, replay):
        monkeypatch.setattr(module, "in_child", answer)


def _check(results: list[Result]) -> dict[tuple[str, str | None], Result]:
    for result in results:
        assert result.value is not None and math.isfinite(result.value)
        assert (result.yardstick is None) == (result.ratio is None)
        assert result.ratio is None or result.ratio > 0
        json.dumps(result.to_json())
    return {(result.unit, result.yardstick): result for result in results}


@pytest.mark.usefixtures("in_this_process")
def test_the_learner_is_shown_beside_the_machines_limit_and_the_plain_implementation() -> None:
    case = learner._UpdateCase("tiny", TINY, utilisation=0.65, peak_gb=2.0)
    rows = _check(list(learner.run(BENCH, [case])))
    measured = {("s/update", "matmul"), ("s/update", "plain"), ("GB at peak", None)}
    assert set(rows) == {("GFLOP/s", None), *measured}
    assert str(rows["s/update", "matmul"].target) == "ratio ≥ 0.65"
    assert rows["s/update", "plain"].target is None
    assert (rows["GB at peak", None].value or 0.0) > 0.05


def test_updates_per_second_and_windows_of_uniform_length() -> None:
    fast = learner._UpdateCase("fast", TINY, per_second=9.0)
    ragged = learner._UpdateCase("ragged", replace(TINY, batch_size=8), faster_than_padded=1.7)
    rows = _check(list(learner.run(BENCH, [fast, ragged])))
    assert str(rows["updates/s", "matmul"].target) == "value ≥ 9"
    assert str(rows["s/update", "padded"].target) == "ratio ≥ 1.7"
    assert rows["s/update", "matmul"].target is None


def test_utilisation_is_needed_operations_over_the_products_rate() -> None:
    from amago.bench.flops import update_flops
    from amago.bench.synthetic import config_of

    update, product = (Timing(seconds, 0.0, 1, 0, False) for seconds in (2.0, 0.5))
    needed = update_flops(spec_of(TINY), config_of(TINY), [13] * 4).total
    expected = needed / 2.0 / (2 * 32**3 / 0.5)
    assert learner.utilisation(TINY, [13] * 4, update, product) == pytest.approx(expected)


def test_batches_have_the_lengths_that_were_asked_for() -> None:
    assert make_batch(TINY).lengths == (13,) * 4
    lengths = uniform_lengths(replace(TINY, batch_size=500))
    assert min(lengths) == 1 and max(lengths) == 12
    assert lengths == uniform_lengths(replace(TINY, batch_size=500))
    batch = make_batch(TINY, [3, 1, 5])
    assert batch.lengths == (6, 4, 2)
    assert batch.prev_action.shape == (12,) and set(batch.prev_action.tolist()) <= set(range(4))
    assert batch.terminal.nonzero()[:, 0].tolist() == [5, 9, 11]


def test_the_table_of_targets_is_complete() -> None:
    """Sizes as the targets name them."""
    medium, popgym, long, ragged = learner.CASES
    assert popgym.size == Size(256, 3, (512, 512, 200), 24, 100)
    assert long.size == ragged.size == Size(256, 3, (128, 128, 64), 24, 500)
    assert medium.size == Size(128, 2, (128, 128, 64), 24, 128)
    assert (popgym.utilisation, long.utilisation, long.peak_gb) == (0.65, 0.6, 2.0)
    assert (medium.per_second, ragged.faster_than_padded) == (9.0, 1.7)
    ten, hundred = memory._LONG
    assert (ten.length, ten.most_seconds, ten.most_gb) == (10_000, 2.5, 2.0)
    assert (hundred.length, hundred.most_gb) == (100_000, 12.0)
    assert (memory._ACTING, memory._MOST_COSTLY) == ((1_000, 10_000), 3.0)
    assert (replay._NUM_TRAJECTORIES, replay._NUM_STEPS) == (20_000, 500)
    assert replay._MOST_OF_LEARNING == 0.05 and start._MOST_SECONDS == 6.0
    spec = rollout.config_of(rollout.WIDE)
    assert spec.env.kwargs == {"corridor": 100} and spec.transformer.num_layers == 2


@pytest.mark.usefixtures("in_this_process")
def test_long_contexts_and_sliding_caches() -> None:
    long = [memory._LongCase(40, 2.5, 2.0), memory._LongCase(80, None, 12.0, slow=True)]
    results = list(memory.run(BENCH, long, acting=(4, 16), size=replace(TINY, batch_size=1)))
    assert len(results) == 6
    _check(results)
    speed, peak, once, _, acting, slid = results
    assert (speed.unit, speed.yardstick, str(speed.target)) == ("s/update", "matmul", "value ≤ 2.5")
    assert peak.setting == speed.setting and str(peak.target) == "value ≤ 2"
    assert once.target is None and "1x80" in once.setting
    assert (acting.yardstick, str(acting.target)) == ("context 4", "ratio ≤ 3")
    assert "slid 10 times" in slid.setting and slid.yardstick == "slid once"


@pytest.mark.usefixtures("in_this_process")
def test_a_quick_run_leaves_out_what_takes_minutes() -> None:
    said: list[str] = []
    bench = replace(BENCH, quick=True, say=said.append)
    results = list(memory.run(bench, [memory._LongCase(80, None, 1.0, slow=True)], (2, 4), TINY))
    assert len(results) == 2 and any("left out" in message for message in said)


@pytest.mark.skipif(not LINUX, reason="limits of memory are Linux's")
def test_an_update_that_does_not_fit_is_a_result_without_a_value() -> None:
    huge = replace(TINY, batch_size=2000, context_length=100)
    answer = in_child("update", learner.update_payload(huge, BENCH, memory._ONCE, 0.4))
    assert "out of memory at a limit of 0.4 GB" in answer["error"]
    result = learner.peak_result("learner", "huge", answer, 2.0)
    assert result.value is None and result.met is False and "out of memory" in result.note


def test_a_failing_child_tells_its_error() -> None:
    with pytest.raises(RuntimeError, match=r"'read' failed in its process:[\s\S]*no data\.mdb"):
        in_child("read", {"path": "/nowhere"})


@pytest.mark.skipif(not LINUX, reason="peaks are read from /proc")
def test_the_peak_of_a_child_is_not_that_of_its_parent() -> None:
    ballast = bytearray(300_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    assert peak_bytes() > 300_000_000
    code = "from amago.process import peak_bytes; print(peak_bytes())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    assert int(done.stdout) < 300_000_000
    kinds = memory_of_process()
    assert kinds["VmRSS"] >= kinds["RssAnon"] >= 300_000_000
    del ballast


@pytest.mark.skipif(not LINUX, reason="resident memory is read from /proc")
@pytest.mark.usefixtures("in_this_process")
def test_replay_is_sampled_beside_the_learner_and_read_through() -> None:
    results = list(replay.run(BENCH, num_trajectories=150, num_steps=20, sizes=[TINY]))
    sampling, resident, own = results
    assert (sampling.unit, sampling.yardstick) == ("ms/batch", "learner")
    assert str(sampling.target) == "ratio ≤ 0.05" and sampling.ratio is not None
    for row in (resident, own):
        assert (row.unit, row.yardstick) == ("MB more", "store")
        assert row.value is not None and row.ratio is not None and row.target is not None


def test_relabeling_is_timed_beside_the_learner_of_its_preset() -> None:
    config = override(tiny("maze-runner"), {"env.num_lanes": 4})
    rows = relabeling._domain("maze-runner", config, BENCH, num_rollouts=8)
    assert [row.setting.partition(", ")[2] for row in rows] == list(relabeling._KINDS)
    for row in rows:
        assert (row.unit, row.yardstick) == ("rollouts/s", "learner")
        assert row.value is not None and row.value > 0 and row.ratio is not None and row.ratio > 0


def test_a_store_is_filled_with_what_was_asked_for(tmp_path: Path) -> None:
    with replay._fill(tmp_path / "replay", 130, 7) as store:
        assert len(store) == 130 and store.num_steps == 910


def test_rollouts_are_counted_and_the_best_number_of_lanes_is_found() -> None:
    tiny = rollout._Acting(16, 2, (8,), (8,), corridor=4, num_layers=1)
    results = list(rollout.run(BENCH, wide=tiny, narrow=tiny, lanes=(2, 6), many=3))
    _check(results)
    bare, plain, best, many = results
    assert [row.yardstick for row in results] == ["no network", "plain", "2 lanes", "no network"]
    assert [str(row.target) for row in (bare, best, many)] == [
        "value ≥ 12,000", "value ≥ 40,000", "value ≥ 70,000",
    ]  # fmt: skip
    assert plain.target is None and plain.value == bare.value
    assert best.note in ("2 lanes", "6 lanes")
    assert (best.ratio == 1.0) == (best.note == "2 lanes")


def test_the_start_ends_with_the_first_update_and_finds_no_compiler() -> None:
    few = ["--env.kwargs.corridor", "4", "--env.num-lanes", "2", "--threads", "1"]
    (result,) = start.run(replace(BENCH, effort=memory._ONCE), ["t-maze", *few])
    assert result.unit == "s" and result.yardstick == "import torch"
    assert result.ratio is not None and result.ratio > 1.0


def test_a_start_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="no preset is called 't-mase'"):
        start.run(BENCH, ["t-mase"])


@pytest.mark.parametrize(
    ("target", "value", "ratio", "met"),
    [
        (Target("value", "≥", 9.0), 9.0, None, True),
        (Target("value", "≥", 9.0), 8.9, 10.0, False),
        (Target("ratio", "≤", 3.0), 99.0, 3.0, True),
        (Target("ratio", "≤", 3.0), 1.0, 3.1, False),
        (Target("ratio", "≤", 3.0), 1.0, None, False),
        (Target("value", "≤", 3.0), None, None, False),
    ],
)
def test_targets_are_met_at_their_bound(target: Target, value: Any, ratio: Any, met: bool) -> None:
    assert Result("c", "s", value, "u", "y", ratio, target=target).met is met


def test_a_result_is_as_disturbed_as_any_timing_it_rests_on() -> None:
    quiet, noisy = (Timing(0.5, 0.1, 3, 0, disturbed) for disturbed in (False, True))
    assert duration(quiet, quiet, scale=1000.0) == {
        "value": 500.0, "spread": 50.0, "disturbed": False,
    }  # fmt: skip
    assert rate(4.0, quiet, noisy) == {"value": 8.0, "spread": 0.8, "disturbed": True}
