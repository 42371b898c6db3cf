"""Nothing is cut off in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.console import Console, RenderableType
from test_report_evaluations import RESULT
from test_report_helpers import write_run
from test_run_helpers import command

from amago.bench import suite
from amago.bench.conditions import Bench
from amago.bench.results import Result, Target
from amago.bench.table import result_table
from amago.cli.command import VERBS, WIDTH
from amago.report.evaluations import evaluation_table
from amago.report.runs import find_runs
from amago.report.tables import adaptation_bars, instruction_table, sweep_table
from amago.report.tuning import _tuning_table

TRIAL = {
    "trial": 3, "state": "complete", "value": 1.5, "last": 1.4, "epoch": 9, "random": -0.123456,
}  # fmt: skip


def _fits(text: str) -> None:
    assert "…" not in text
    for line in text.splitlines():
        # tyro writes the usage as one line, which a terminal continues on the next.
        assert len(line) <= WIDTH or line.startswith("usage:"), line


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_the_help_of_every_verb_fits(verb, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    code, out, _ = command(capsys, *([verb] if verb else []), "--help")
    assert code == 0 and len(out) > 100
    _fits(out)


@pytest.mark.parametrize(
    "arguments",
    [["presets"], ["presets", "--ablations"], ["zoo"], ["examples"], ["reproduce", "--list"]],
)
def test_listings_fit(arguments, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    code, out, _ = command(capsys, *arguments)
    assert code == 0 and len(out) > 100
    _fits(out)


def test_tables_fit(tmp_path) -> None:
    for rate in ("1e-4", "3e-4"):
        group = f"dark-key-to-door__exploration.anneal_fraction={rate}__memory=gru"
        for seed in range(3):
            write_run(tmp_path / group / f"seed-{seed}", seed=seed)
    measured = Result(
        "rollout", "transformer d=128, 2 layers, 24 lanes", 12345.6, "env steps/s", "no network",
        0.42, 100.0, target=Target("value", "≥", 12_000),
    )  # fmt: skip
    tables: list[RenderableType] = [
        evaluation_table(RESULT),
        sweep_table(find_runs(tmp_path)),
        adaptation_bars([0.1] * 10, [0.2] * 10),
        instruction_table([{"instruction": "eat cow, " * 9, "success": 0.5, "random": 0.1}], 9),
        _tuning_table([{**TRIAL, "settings": {"exploration.anneal_fraction": 0.123456789}}]),
        result_table([measured] * 3),
    ]
    for table in tables:
        console = Console(width=WIDTH, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
        console.print(table)
        _fits(console.export_text())


def test_the_bench_says_its_first_number_before_the_first_case(monkeypatch) -> None:
    said: list[str] = []

    def case(bench: Bench) -> Iterator[Result]:
        assert "GFLOP/s" in said[0]
        yield Result("start", "cold", 1.5, "s")
        assert said[1:] == ["start, cold: 1.5 s"], "said before the next one is measured"
        yield Result("start", "warm", 0.5, "s")

    monkeypatch.setitem(suite.CASES, "start", case)
    assert len(suite.run("start", Bench(say=said.append))) == 2
    assert said[2:] == ["start, warm: 0.5 s"]
