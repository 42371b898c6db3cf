"""History of recorded runs, and the verb that writes it."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from test_run_helpers import command

from amago.bench import record, rollout, suite
from amago.bench.conditions import Bench
from amago.bench.results import Result, Target
from amago.envs.elsewhere import LanesElsewhere

TARGET = Target("ratio", "≥", 0.6)
FIRST = Result("learner", "tiny", 2.0, "s/update", "matmul", 0.5, 0.1, target=TARGET)
OTHER = Result("learner", "tiny", 2.0, "s/update", "plain", 4.0, 0.1)
LATER = Result("learner", "tiny", 1.0, "s/update", "matmul", 1.0, 0.1, target=TARGET)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own, without a history."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(record, "SOURCE", tmp_path)
    return tmp_path


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """What the cases measure, without measuring."""
    made = [FIRST, OTHER]
    cases = {"learner": lambda bench: list(made), "start": lambda bench: []}
    monkeypatch.setattr(suite, "CASES", cases)
    return made


def _lines(repository: Path) -> list[dict[str, Any]]:
    return record.read(repository / "benchmarks" / "history.jsonl")


def test_json_is_a_list_of_objects_with_the_promised_keys(
    results: list[Result], capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    code, out, _ = command(capsys, "bench", "learner", "--json", "--threads", "1")
    assert code == 0
    first, other = json.loads(out)
    promised = ("case", "setting", "value", "unit", "yardstick", "ratio")
    values = tuple(first[key] for key in promised)
    assert values == ("learner", "tiny", 2.0, "s/update", "matmul", 0.5)
    assert (first["target"], first["met"], first["spread"]) == ("ratio ≥ 0.6", False, 0.1)
    assert (other["yardstick"], other["target"], other["met"]) == ("plain", None, None)
    assert not (repository / "benchmarks" / "history.jsonl").exists()


def test_without_json_a_table_shows_targets_and_verdicts(
    results: list[Result], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command(capsys, "bench", "all", "--threads", "1")
    assert code == 0
    assert re.search(r"learner .*2 ± 0\.05 s/update .*matmul .*0\.5 .*ratio ≥ 0\.6 .*no", out)
    assert "change" not in out


def test_recording_appends_a_line_and_shows_the_change(
    results: list[Result], capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    code, out, _ = command(capsys, "bench", "learner", "--record", "--threads", "1")
    assert code == 0 and len(re.findall(r"\bnew\b", out)) == 2
    results[:] = [LATER]
    code, out, _ = command(capsys, "bench", "learner", "--record", "--threads", "1")
    assert code == 0 and "value -50.0%, ratio +100.0%" in out
    first, second = _lines(repository)
    assert (len(first["results"]), len(second["results"])) == (2, 1)
    assert first["threads"] == 1 and first["quick"] is False
    assert first["versions"]["torch"] == torch.__version__
    assert first["machine"]["model"] and first["machine"]["cores"] >= 1
    assert {"date", "commit", "python"} <= set(first)
    assert second["results"][0]["met"] is True


def test_only_lines_of_the_same_machine_threads_torch_and_effort_are_compared() -> None:
    now = record.history_line(Bench(threads=2), [FIRST])
    assert record.latest([now], now)[FIRST.key]["value"] == 2.0
    for path, value in (
        (("machine", "model"), "abacus"),
        (("machine", "cores"), 99),
        (("threads",), 1),
        (("versions", "torch"), "1.0"),
        (("quick",), True),
        (("device",), "a GPU"),
    ):
        line = copy.deepcopy(now)
        node = line
        for name in path[:-1]:
            node = node[name]
        node[path[-1]] = value
        assert record.latest([line], now) == {}, path
    other = copy.deepcopy(now) | {"commit": "another", "date": "earlier"}
    assert record.latest([other], now)[FIRST.key]["commit"] == "another"
    assert other.pop("device") == "cpu", "lines without a device are older than --device"
    assert record.latest([other], now)[FIRST.key]["commit"] == "another"


def test_networks_are_measured_on_the_device_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def case(bench: Bench) -> list[Result]:
        config = rollout.config_of(rollout.NARROW)
        lanes = LanesElsewhere(config.env, seed=0, num_lanes=1)
        agent: Any = rollout.agent_policy(config, bench.device)(lanes.spec)
        seen.append(agent.discounts.device.type)
        return []

    monkeypatch.setattr(rollout, "AgentPolicy", lambda agent, seed: agent)
    monkeypatch.setattr(suite, "CASES", {"rollout": case})
    for name, device in (("auto", "cpu"), ("cpu", "cpu"), ("meta", "meta")):
        assert command(capsys, "bench", "rollout", "--json", "--device", name)[0] == 0
        assert seen.pop() == device
    code, _, err = command(capsys, "bench", "rollout", "--device", "cuda:9")
    assert code == 2 and "cuda:9 cannot be used here; try auto or cpu" in err


def test_each_measurement_is_compared_with_its_newest_predecessor() -> None:
    """The last line need not have all cases."""
    bench = Bench(threads=2)
    old = record.history_line(bench, [FIRST, OTHER])
    new = record.history_line(bench, [LATER])
    found = record.latest([old, new], new)
    assert found[FIRST.key]["value"] == 1.0 and found[OTHER.key]["value"] == 2.0


def test_changes_say_when_they_cannot_be_trusted() -> None:
    before = FIRST.to_json()
    assert record.change(LATER, before) == "value -50.0%, ratio +100.0%"
    assert record.change(LATER, before | {"disturbed": True}).endswith("(disturbed)")
    assert record.change(LATER, None) == "new"
    failed = Result("learner", "tiny", None, "s/update", "matmul", note="out of memory")
    assert record.change(failed, before) == "–"
    assert record.change(LATER, failed.to_json()) == "–"


def test_a_damaged_history_is_not_overlooked(
    results: list[Result], capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    path = repository / "benchmarks" / "history.jsonl"
    good = json.dumps(record.history_line(Bench(threads=1), [FIRST]))
    for bad in ("{", "[]", '{"machine": 3}'):
        path.write_text(f"{good}\n{bad}\n")
        code, _, err = command(capsys, "bench", "learner", "--record")
        assert code == 2 and "line 2" in err and "restore the file" in err
        assert path.read_text() == f"{good}\n{bad}\n"


def test_an_installed_package_measures_everything_but_refuses_to_record(
    results: list[Result], capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    (repository / "pyproject.toml").unlink()
    code, out, _ = command(capsys, "bench", "learner", "--json")
    assert code == 0 and len(json.loads(out)) == 2
    code, _, err = command(capsys, "bench", "learner", "--record")
    assert code == 2 and "benchmarks/history.jsonl" in err and "checkout" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["leaner"], ["leaner", "rollout", "learner", "all"]),
        (["learner", "--threads", "-1"], ["--threads", "0 or more", "-1"]),
        (["learner", "--threads", "two"], ["--threads", "two"]),
    ],
)
def test_bad_arguments_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    code, out, err = command(capsys, "bench", *arguments)
    assert code == 2
    for word in words:
        assert word in out + err


def test_progress_goes_to_standard_error_and_results_to_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def case(bench: Bench) -> list[Result]:
        bench.say("half way")
        assert bench.quick and bench.threads == 1
        return [FIRST]

    monkeypatch.setattr(suite, "CASES", {"replay": case})
    _, out, err = command(capsys, "bench", "replay", "--json", "--quick", "--threads", "1")
    assert len(json.loads(out)) == 1 and "bench: half way" in err


def test_listing_the_options_needs_no_torch() -> None:
    code = (
        "import sys; from amago.cli import main\n"
        "try: main(['bench', '--help'])\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--record" in done.stdout
