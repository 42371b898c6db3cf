"""A small part of `make torture` in every run of the tests."""

from __future__ import annotations

from pathlib import Path

from torture import KINDS, campaign, table


def test_runs_that_are_killed_and_damaged_at_random_are_exact_or_say_what_is_wrong(
    tmp_path: Path,
) -> None:
    kinds = ["GRU, continuous", "relabeling"]
    assert set(kinds) <= set(KINDS)
    tallies = campaign(kinds, kills=6, damages=6, seed=3, folder=tmp_path, say=print)
    assert [failure for tally in tallies.values() for failure in tally.failures] == []
    assert sum(tally.kills for tally in tallies.values()) >= 6
    assert all(tally.exact == tally.runs for tally in tallies.values())
    assert sum(tally.went_on + tally.refused for tally in tallies.values()) == 6
    assert "| relabeling |" in table(tallies)
