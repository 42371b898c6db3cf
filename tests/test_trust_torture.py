"""A part of `make torture` in every run of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torture.campaign import MARKS, Outcome, shares, tables, write
from torture.faults import ATTACKS
from torture.kills import Tally
from torture.runs import KINDS
from torture.sweeps import KIND as SWEEP
from torture.target import Faults

from amago.nets.settings import MEMORIES

_KILLED = """
outcome = campaign(["GRU, continuous", "relabeling", "imported data"], 9, 0, 3, folder, print)
assert outcome.failures == [], outcome.failures
tallies = outcome.kills.values()
assert all(tally.kills >= 3 for tally in tallies)
assert all(tally.exact == tally.runs > 0 for tally in tallies)
"""
_ATTACKED = """
slow = ("tmpfs", "another user", "cut", "emptied", "memory")
quick = [name for name in ATTACKS if not any(word in name for word in slow)]
outcome = campaign(["GRU, continuous"], 1, 1, 4, folder, print, quick)
assert outcome.failures == [], outcome.failures
assert all(faults.times >= 1 for faults in outcome.faults.values())
"""


@pytest.mark.parametrize("program", [_KILLED, _ATTACKED], ids=["killed", "attacked"])
def test_runs_that_are_killed_or_attacked_are_exact(tmp_path: Path, program: str) -> None:
    """In a process of its own: children are forked, which a process with threads must not do."""
    start = "from pathlib import Path\nfrom torture.campaign import campaign\n"
    start += f"from torture.faults import ATTACKS\nfolder = Path({str(tmp_path)!r})\n"
    code = [sys.executable, "-c", start + program]
    subprocess.run(code, check=True, cwd=Path(__file__).parent, timeout=900)


def test_every_memory_and_kind_of_action_is_tortured() -> None:
    from torture.runs import config_of

    from amago.envs.registry import make_vector

    configs = [config_of(kind) for kind in KINDS]
    assert {config.memory for config in configs} == set(MEMORIES)
    specs = [
        make_vector(config.env, seed=0, num_lanes=max(1, len(config.env.ids))).spec
        for config in configs
        if not config.env.num_workers
    ]
    assert {spec.action.kind for spec in specs} == {
        "continuous", "discrete", "multi_discrete", "multi_binary",
    }  # fmt: skip


def test_every_kind_gets_its_share_of_the_kills() -> None:
    kinds = [*KINDS, SWEEP]
    for kills in (1, 20, 150, 500):
        planned = shares(kinds, kills)
        assert list(planned) == kinds and sum(planned.values()) == max(kills, len(kinds))
        assert min(planned.values()) >= max(kills // len(kinds), 1)
    assert set(shares(kinds, 0).values()) == {0}


def test_the_tables_are_written_where_a_page_has_a_place_for_them(tmp_path: Path) -> None:
    outcome = Outcome({"GRU": Tally(kills=3, runs=1, exact=1)}, {"SIGINT": Faults(times=2)})
    text = tables(outcome)
    assert "| GRU | 3 |" in text and "| all | 3 |" in text and "| SIGINT | 2 |" in text
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKS[0]} old\n{MARKS[1]}\nafter\n")
    write(page, text)
    assert page.read_text() == f"before\n{MARKS[0]}\n{text}\n{MARKS[1]}\nafter\n"
    page.write_text("nothing here")
    with pytest.raises(ValueError, match="no place"):
        write(page, text)


def test_the_page_has_a_place_for_the_tables_and_a_row_for_every_attack() -> None:
    page = Path(__file__).parents[1] / "docs" / "reliability.md"
    write(page, None)
    shown = page.read_text().partition(MARKS[0])[2].partition(MARKS[1])[0]
    missing = [name for name in (*KINDS, SWEEP, *ATTACKS) if f"| {name} |" not in shown]
    assert missing == [], "run `make torture` again"
