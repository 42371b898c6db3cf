"""`amago reproduce`: runs through the queue, data, picture and page; what holds; what it costs."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claim_numbers import unsupported
from test_report_helpers import write_run
from test_reproduce_helpers import write_arms
from test_run_helpers import command, tiny

import amago
from amago import api
from amago.bench.context_length import _ARRANGEMENTS, _read_rates, _write_rates, measure
from amago.bench.timing import Effort
from amago.board.reached import Reached
from amago.board.table import _BoardRow, write_board
from amago.config import Config, override, to_dict
from amago.envs.registry import make_vector
from amago.report.runs import read_run
from amago.reproduce import registry
from amago.reproduce.claims.claim import read_claim
from amago.reproduce.claims.holds import verdicts
from amago.reproduce.claims.pages import write_all, write_indexes
from amago.reproduce.claims.probes import probe_score
from amago.reproduce.entry import Experiment, Measurement, Probe, Variant
from amago.reproduce.listing import Where, _hours, forecast
from amago.reproduce.pace import Pace, paces, recorded_pace
from amago.reproduce.plan import Planned, resolve
from amago.reproduce.probe import _run_probe
from amago.reproduce.publish import publish
from amago.sweep.jobs import Job

RESULTS = Path(__file__).parents[1] / "results"
TINY = Experiment(
    paper="Figure 0",
    claim="tiny-runs-make-a-page",
    question="Do tiny runs make a page?",
    measure="return",
    preset="dark-key-to-door",
    arms=(Variant("full"), Variant("no memory", "no-memory")),
    seeds=(0,),
    epochs=2,
    set=("env.kwargs.grid=3", "env.kwargs.horizon=12", "env.kwargs.trial_limit=6"),
    on_cpu=(
        "size=tiny", "env.num_lanes=4", "env.eval_lanes=4", "run.updates_per_epoch=1",
        "run.eval_episodes=4", "run.final_eval_episodes=4", "run.report=False",
    ),
    probes=(Probe("longer", ("env.kwargs.horizon=18",), episodes=4),),
    view="trials",
    control="no memory",
    holds=("full > -1", "full > 1000"),
    caveats=("It is tiny.",),
)  # fmt: skip


@pytest.fixture
def only_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entries", lambda: {"tiny": TINY})


def test_a_claim_is_run_published_and_not_run_again(
    only_tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(Path(amago.__file__).parents[1]))
    where = ["--root", tmp_path / "runs", "--out", tmp_path / "results"]
    code, out, _ = command(capsys, "reproduce", "tiny", *where)
    assert code == 0, out
    folder = tmp_path / "results" / TINY.claim
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert "Holds: full > -1" in page and "**Does not hold**: full > 1000" in page
    assert "earlier settings" not in page and (folder / "picture.png").is_file()
    claim = read_claim(folder)
    assert [(arm.name, len(arm.runs)) for arm in claim.arms] == [("full", 1), ("no memory", 1)]
    assert claim.arms[0].runs[0].config["run"]["epochs"] == 2
    scores = json.loads((folder / "data/full/seed-0/probes/longer.json").read_text())
    assert scores["rows"][0]["epoch"] == 2 and "success_return" in scores["rows"][0]
    capsys.readouterr()

    code, out, _ = command(capsys, "reproduce", "tiny", *where)
    assert code == 0 and "0 done, 0 failed, 2 were complete before" in out
    code, out, _ = command(capsys, "reproduce", "--list", *where)
    assert code == 0 and "2 of 2" in out and "does not hold" in out
    code, out, _ = command(capsys, "reproduce", "tiny", "--list", *where)
    assert "must hold: full > 1000" in out and "budget of a run: 2 epochs of 1 updates" in out


def test_runs_are_trained_where_they_are_placed(
    only_tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    placed: list[str] = []

    def place(address: str, start: Any, devices: Any) -> Any:
        assert not devices
        placed.append(address)
        return lambda job, step: [sys.executable, "-c", f"print({start(job, step)!r})"]

    monkeypatch.setattr("amago.cli.placing.placed", place)
    where = ["--root", tmp_path / "runs", "--out", tmp_path / "results"]
    code, out, _ = command(capsys, "reproduce", "tiny", "--scale.address", "auto", *where)
    assert placed == ["auto"] and code != 0 and "no run is complete" in out
    logs = [path.read_text() for path in (tmp_path / "runs").rglob("*.log")]
    assert len(logs) == 2 and all("'train', 'dark-key-to-door'" in log for log in logs)


def test_settings_that_do_not_exist_fail_before_any_run(
    only_tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--root", tmp_path / "runs", "--out", tmp_path, "--set", "run.epoch=3"]
    code, _, err = command(capsys, "reproduce", "tiny", *given)
    assert code == 2 and "did you mean run.epochs" in err and not (tmp_path / "runs").exists()


def test_an_entry_without_presets_of_the_paper_is_left_out_with_a_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = replace(TINY, preset="masked-recall")
    monkeypatch.setattr(registry, "entries", lambda: {"recall": alone})
    code, out, _ = command(capsys, "reproduce", "recall", "--scale", "paper")
    assert code == 0 and "recall: left out, there is no preset masked-recall/paper" in out
    assert "no run is complete" in out and not list(tmp_path.iterdir())


def _runs(root: Path, levels: dict[str, float], config: Config) -> list[Planned]:
    """Finished runs of the tiny experiment with some settings."""
    found = []
    for arm in TINY.arms:
        run = root / arm.folder / "seed-0"
        write_run(run, preset="dark-key-to-door", level=levels[arm.name])
        header = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps({**header, "config": to_dict(config)}))
        found.append(Planned(arm, Job("dark-key-to-door", 0, {}, run)))
    return found


def test_new_runs_of_an_arm_replace_those_of_earlier_settings(
    only_tiny: None, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    write_arms(TINY, out, seeds=2)
    today = resolve("dark-key-to-door", TINY.settings_of(TINY.arms[0], "cpu"))
    claim = publish(TINY, "cpu", _runs(tmp_path, {"full": 2.0, "no memory": 1.0}, today), out)
    assert claim is not None
    assert [len(arm.runs) for arm in claim.arms] == [1, 1], "the old seeds are gone"
    assert [arm.earlier_settings for arm in claim.arms] == [False, True], (
        "the second is no ablation"
    )
    assert publish(TINY, "cpu", [], tmp_path / "none") is None


def test_pages_say_what_holds_with_intervals_over_seeds(only_tiny: None, tmp_path: Path) -> None:
    def states(*statements: str) -> list[str]:
        claim = read_claim(tmp_path / TINY.claim)
        object.__setattr__(claim, "holds", statements)
        return [verdict.state for verdict in verdicts(claim)]

    write_arms(TINY, tmp_path, seeds=3)
    assert states("full > no memory, intervals apart", "full < no memory") == ["holds", "fails"]
    assert states("full > random play", "full <= 90%", "full > 0.99") == ["holds", "holds", "fails"]
    assert states("longer of full > longer of no memory") == ["holds"]
    assert states("activation/query of full > 5", "activation/none of full > 5") == [
        "fails",
        "open",
    ]
    assert states("full > another arm", "nowhere: full > no memory") == ["open", "open"]


def test_one_seed_has_an_interval_only_if_its_rollouts_tell(
    only_tiny: None, tmp_path: Path
) -> None:
    folder = write_arms(TINY, tmp_path, seeds=1)
    said = "full > no memory, intervals apart"
    claim = read_claim(folder)
    object.__setattr__(claim, "holds", (said,))
    (verdict,) = verdicts(claim)
    assert verdict.state == "fails" and "an interval is not known" in verdict.why
    for arm, error in (("full", 0.01), ("no-memory", 0.01)):
        path = folder / "data" / arm / "seed-0" / "result.json"
        result = json.loads(path.read_text())
        path.write_text(json.dumps({**result, "pooled": {"return_error": error}}))
    claim = read_claim(folder)
    object.__setattr__(claim, "holds", (said,))
    assert verdicts(claim)[0].state == "holds"


def test_a_number_that_no_data_have_is_found(only_tiny: None, tmp_path: Path) -> None:
    folder = write_arms(TINY, tmp_path, seeds=1)
    words = folder / "claim.toml"
    words.write_text('answer = "Full has 0.600, 90% at its best, after 6 epochs; no memory .45."')
    assert unsupported(read_claim(folder)) == []
    words.write_text('answer = "Full has 0.82, that is 93%, in 1,234 steps of 2 seeds."')
    assert unsupported(read_claim(folder)) == ["0.82", "93%", "1,234"]
    words.write_text('measure = "success"')
    with pytest.raises(ValueError, match="takes answer, details, caveats, tables alone"):
        read_claim(folder)


def test_the_newest_run_of_our_own_says_what_a_preset_takes(tmp_path: Path) -> None:
    def run(name: str, created: str, seconds: float, **more: Any) -> None:
        folder = write_run(tmp_path / name / "seed-0", preset="wind")
        header = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**header, "created": created, **more}))
        result = json.loads((folder / "result.json").read_text())
        (folder / "result.json").write_text(json.dumps({**result, "seconds": seconds}))

    run("a", "2026-11-18T10:00", 100.0)
    run("b", "2026-11-17T10:00", 200.0)
    run("c", "2026-11-19T10:00", 300.0, baseline={"method": "recurrent-ppo"})
    assert paces([tmp_path])["wind"].seconds_per_update == 1.0
    assert paces([tmp_path / "b"])["wind"].seconds_per_update == 2.0


def test_hours_are_known_for_every_experiment() -> None:
    where, known = Where(Path("nowhere"), Path("results")), paces([RESULTS])
    for name, entry in registry.entries().items():
        if isinstance(entry, Experiment):
            hours = _hours(entry, where, known)
            assert hours is not None and 0.1 < hours < 100, name


def test_hours_follow_the_pace_of_earlier_runs_and_the_budget(tmp_path: Path) -> None:
    run = write_run(tmp_path / "arm" / "seed-0", preset="wind")
    assert recorded_pace(read_run(run)) == Pace(1.2, 0.0, 100.0)  # 120 s, 100 updates, one lane
    rows = [{"epoch": n, "seconds": 6.0, "collect_seconds": 2.0, "learn_seconds": 4.0}
            for n in range(1, 21)]  # fmt: skip
    (run / "timing.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert recorded_pace(read_run(run)) == Pace(0.8, 0.02, 100.0)
    assert paces([tmp_path])["wind"].seconds_per_update == 0.8
    rows = [{**row, "collect_cpu_seconds": 1.0, "learn_cpu_seconds": 2.0} for row in rows]
    (run / "timing.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert recorded_pace(read_run(run)) == Pace(0.4, 0.01, 100.0), "others used the processor too"

    config = override(Config(), {"run.epochs": 10, "run.updates_per_epoch": 5, "env.num_lanes": 2})
    assert Pace(2.0, 0.01, 100.0).seconds(config) == pytest.approx(10 * (5 * 2.0 + 200 * 0.01))
    longer = override(config, {"env.kwargs": {"horizon": 200}})
    assert Pace(2.0, 0.01, 100.0, 100).seconds(longer) == pytest.approx(10 * (20.0 + 4.0))
    limited = override(config, {"run.max_minutes": 0.5})
    assert Pace(2.0, 0.01, 100.0).seconds(limited) == 30.0

    where = Where(tmp_path / "runs", tmp_path, seeds=(0, 1))
    assert "4 of 4 runs are left; all of them take about 0.0 hours" in forecast(
        {"tiny": TINY}, where, {}
    )
    assert _hours(TINY, where, {}) is None, "nobody has ever timed this preset"
    known = {"dark-key-to-door": Pace(450.0, 0.0, 12.0)}
    assert _hours(TINY, where, known) == pytest.approx(2 * 2 * 2 * 450 / 3600)


def test_a_measurement_is_made_once_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = registry.entries()["exploration-schedule"]
    assert isinstance(entry, Measurement)
    monkeypatch.setattr(registry, "entries", lambda: {"schedule": entry})
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(amago.__file__).parents[1])]))
    data = tmp_path / entry.claim / "data" / "schedule.csv"
    for names, made in (([], True), ([], False), (["schedule"], True)):
        if data.is_file():
            data.write_text(data.read_text() + "1.0,1.5,0.0\n")
        command(capsys, "reproduce", *names, "--out", tmp_path, "--root", tmp_path / "runs")
        assert data.is_file() and ("1.5" in data.read_text()) != made
    page = (tmp_path / entry.claim / "README.md").read_text(encoding="utf-8")
    assert "| 0% | 1.000 | 0.800 |" in page and "| 100% | 0.050 | 0.010 |" in page


def test_the_board_stands_between_its_markers_and_nothing_without_one(tmp_path: Path) -> None:
    root = tmp_path / "results"
    root.mkdir()
    marks = "<!-- board: generated by `make results` -->\nold\n<!-- end of board -->\n"
    (tmp_path / "README.md").write_text(f"# Page\n\n{marks}")
    write_indexes(root)
    assert (tmp_path / "README.md").read_text() == f"# Page\n\n{marks.replace('old' + chr(10), '')}"
    row = _BoardRow("t-maze", "amago", (0, 1), (Reached(50, 100, 2.0), None), (1.0, 0.5))
    (root / "leaderboard").mkdir()
    write_board([row], root / "leaderboard")
    write_indexes(root)
    text = (tmp_path / "README.md").read_text()
    assert "| t-maze | 1 | amago | – | 8 | 50 | 1 of 2 | 1 0.5 |" in text


def test_success_in_a_probe_is_that_of_drawn_instructions(only_tiny: None, tmp_path: Path) -> None:
    run = read_run(write_arms(TINY, tmp_path, seeds=1) / "data" / "full" / "seed-0")
    assert probe_score(run, "longer") == pytest.approx(0.9)
    assert probe_score(run, "no such probe") is None


def test_pages_of_entries_and_of_hand_written_claims_stand_in_one_index(
    only_tiny: None, tmp_path: Path
) -> None:
    root = tmp_path / "results"
    write_arms(TINY, root, seeds=1)
    marks = "<!-- claims: generated by `make results` -->\n<!-- end of claims -->\n"
    (root / "README.md").write_text(marks)
    write_all(root)
    index = (root / "README.md").read_text()
    assert f"[{TINY.claim}]({TINY.claim}/README.md), **does not hold**" in index


def test_a_probe_asks_for_instructions_at_every_kept_checkpoint(tmp_path: Path) -> None:
    kept = {"run.epochs": 3, "run.keep_interval": 1, "run.save_interval": 1}
    run = tmp_path / "run"
    api.train(tiny("package-delivery", kept), 0, run, preset="package-delivery")
    spec = make_vector(tiny("package-delivery").env, seed=0, num_lanes=1).spec.goals
    assert spec is not None
    asked = tuple(spec.write(np.array(goals)) for goals in ([[3]], [[3], [5]]))
    rows = _run_probe(run, Probe("plans", instructions=asked, which="kept", episodes=2))["rows"]
    assert [row["epoch"] for row in rows] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [row["instruction"] for row in rows[:3]] == [*asked, "(as drawn)"]
    assert all(0 <= row["success"] <= 1 and "random_return" in row for row in rows)
    (row,) = _run_probe(run, Probe("lengths", episodes=8))["rows"]
    assert row["epoch"] == 3
    assert sum(known["episodes"] for known in row["by_length"].values()) == 8


def test_rates_are_measured_and_those_of_other_devices_stay(tmp_path: Path) -> None:
    rows = measure((4, 8), 16, Effort(rounds=1, max_rounds=1, block_seconds=0.0))
    assert {(row["context"], row["batch"]) for row in rows} == {(4, 4), (8, 2)}
    assert {row["arrangement"] for row in rows} == set(_ARRANGEMENTS)
    _write_rates(tmp_path, [{**row, "device": "another"} for row in rows])
    for _ in range(2):
        _write_rates(tmp_path, rows)
    assert len(_read_rates(tmp_path)) == 12
