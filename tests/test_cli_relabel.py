"""What `amago relabel` shows of a stored rollout, and of which one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_goals_helpers import record_script, scripted_spec
from test_run_helpers import command, tiny

from amago.config import override, to_dict
from amago.envs.domains.crafter.goals import GOAL_SIZE, VOCABULARY, goal
from amago.goals import GoalSpec
from amago.replay.describe import describe_relabel, goal_choices
from amago.replay.relabel import Choice
from amago.replay.settings import RelabelSettings
from amago.replay.store import TrajectoryStore
from amago.types import Trajectory

LETTERS = GoalSpec(3, 1, "token", vocabulary=("", *"abcdefghij"))
Capture = pytest.CaptureFixture[str]


def rollout(*rows: str, asked: str = "j, j") -> Trajectory:
    """A rollout whose steps achieve the letters of each word."""
    return record_script(LETTERS, [[], *([[ord(c) - 96] for c in row] for row in rows)], asked)


def write_run(
    folder: Path,
    own: list[Trajectory],
    protected: list[Trajectory] | None = None,
    overrides: dict[str, Any] | None = None,
    spec: GoalSpec = LETTERS,
    custom: bool = True,
) -> Path:
    """A run folder of which only the header and the replay are there."""
    with TrajectoryStore(folder / "replay", scripted_spec(spec), 100) as store:
        store.append(own)
        store.append_protected(protected or [])
    config = to_dict(override(tiny("crafter"), overrides or {}))
    header = {"config": config, "seed": 0, "custom": {"env": "Scripted"} if custom else {}}
    (folder / "config.json").write_text(json.dumps(header))
    return folder


OPEN = rollout("a", "b", "")
DONE = rollout("a", "b", asked="a, b")


@pytest.mark.parametrize(
    ("own", "protected", "found"),
    [
        ([OPEN, OPEN, DONE], [OPEN, OPEN], 1),
        ([OPEN, rollout("", "", asked="j")], [], 0),  # nothing to choose in the later one
        ([DONE, DONE], [OPEN, OPEN], -1),
        ([DONE, DONE], [DONE], 1),
        ([], [DONE, DONE], -1),
    ],
)
def test_the_latest_open_trajectory_is_the_runs_own_before_a_demonstration(
    own: list[Trajectory], protected: list[Trajectory], found: int, tmp_path: Path, capsys: Capture
) -> None:
    code, out, error = command(capsys, "relabel", write_run(tmp_path, own, protected))
    assert code == 0 and out.startswith(f"trajectory {found}\n"), out + error


@pytest.mark.parametrize(
    ("own", "protected", "message"),
    [
        ([OPEN] * 4, [OPEN] * 2, "it has 0 to 3 and -1 to -2, which are protected"),
        ([OPEN] * 4, [], "it has 0 to 3"),
        ([], [OPEN] * 2, "it has -1 to -2, which are protected"),
    ],
)
def test_an_unknown_trajectory_is_told_which_there_are(
    own: list[Trajectory],
    protected: list[Trajectory],
    message: str,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    run = write_run(tmp_path, own, protected)
    code, _, error = command(capsys, "relabel", run, "--trajectory", "7")
    assert code == 2 and f"no trajectory 7; {message}" in error
    assert ("protected" in error) == bool(protected)


def test_a_run_of_single_goals_shows_one_that_left_its_first_goal_open(
    tmp_path: Path, capsys: Capture
) -> None:
    first_done = rollout("c", "", asked="c, j")
    run = write_run(tmp_path, [OPEN, first_done], overrides={"relabel.multi_goal": False})
    _, out, _ = command(capsys, "relabel", run)
    assert out.startswith("trajectory 0\nstored     j x2; this run keeps the first goal\n")
    assert "asked      j\n" in out


def test_without_the_suites_extra_goals_are_written_as_they_are_stored(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = GoalSpec(3, GOAL_SIZE, "token", vocabulary=VOCABULARY)
    travel = [list(goal("travel", 10, 10))]
    crafted = record_script(spec, [[], travel, []], "eat cow")

    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError("this environment needs 'crafter', which is not installed")

    monkeypatch.setattr("amago.envs.registry.make_vector", fails)
    run = write_run(tmp_path, [crafted], spec=spec, custom=False)
    code, out, error = command(capsys, "relabel", run)
    assert code == 0, error
    assert "as they are stored" in out and "needs 'crafter'" in out
    assert "travel 10 10" in out and "eat cow" in out


def test_the_description_lists_achieved_goals_with_their_steps_and_what_became_of_them() -> None:
    before = rollout("c", "c", "c", "", "c", "a", "bde", "bde", "j", "abcdef", asked="a, j, i")
    choice = Choice(np.array([7]), LETTERS.read("d"))
    text = describe_relabel(before, before, LETTERS, choice)
    lines = text.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("achieved   in"))
    assert lines[begin:-1] == [
        "achieved   in 9 steps, of which 4 are candidates and 1 chosen",
        "  step 1:       c                      candidate",
        "  steps 2-3:    c",
        "  step 5:       c                      candidate",
        "  step 6:       a                      completed",
        "  step 7:       b, d, e                chosen: d",
        "  step 8:       b, d, e",
        "  step 9:       j                      completed",
        "  step 10:      a, b, c, d and 2 more  candidate",
    ]
    alone = describe_relabel(before, before, LETTERS, Choice(np.array([1]), LETTERS.read("c")))
    assert "  step 1:       c                      chosen\n  steps 2-3:" in alone


def test_the_description_of_a_complete_rollout_has_no_candidates() -> None:
    nothing = Choice(np.zeros(0, np.int64), LETTERS.goals([]))
    done = rollout("c", "a", asked="a")
    text = describe_relabel(done, done, LETTERS, nothing)
    assert "0 are candidates and 0 chosen\n  step 1:       c\n  step 2:       a  completed" in text
    barren = rollout("", "")
    assert "achieved   nothing in any step" in describe_relabel(barren, barren, LETTERS, nothing)


def test_long_lists_of_achieved_goals_keep_what_was_chosen_and_count_the_rest() -> None:
    before = rollout(*(["a", "b"] * 40), "c")
    choice = Choice(np.array([70]), LETTERS.read("b"))
    lines = describe_relabel(before, before, LETTERS, choice).splitlines()
    steps = [line for line in lines if line.startswith("  step")]
    assert len(steps) == 16 and "step 70:      b  chosen" in steps[-1]
    assert lines[-2] == "  and 65 more steps"


def test_choices_follow_the_settings_of_the_run(tmp_path: Path) -> None:
    both = [rollout("ab", "c", asked="a, j"), rollout("d", "c", asked="j, a")]
    with TrajectoryStore(tmp_path, scripted_spec(LETTERS), 10) as store:
        store.append(both)
        assert {row.goal for row in goal_choices(store)} == {"c", "d"}
        # The first goal of the first rollout was completed: it is no longer relabeled.
        single = goal_choices(store, settings=RelabelSettings(multi_goal=False))
        assert {row.goal: row.trajectories for row in single} == {"c": 1, "d": 1}
        none = goal_choices(store, settings=RelabelSettings("none"))
        assert all(row.with_importance == row.without_importance == 0 for row in none)
        every = goal_choices(store, settings=RelabelSettings("all"), samples=5)
        (chance,) = [row.with_importance for row in every if row.goal == "d"]
        assert chance == 1.0  # two open goals, two candidates


def test_choices_are_drawn_listed_and_written_as_numbers(tmp_path: Path, capsys: Capture) -> None:
    kept = [rollout("a", "a", "b") for _ in range(9)] + [rollout("a", "a", "a", "c")]
    run = write_run(tmp_path, kept)
    code, out, error = command(capsys, "relabel", run, "--choices")
    assert code == 0, error
    assert (run / "choices.png").read_bytes().startswith(b"\x89PNG")
    with (run / "choices.csv").open() as file:
        rows = {row["goal"]: row for row in csv.DictReader(file)}
    assert {goal: int(row["trajectories"]) for goal, row in rows.items()} == {
        "c": 1,
        "b": 9,
        "a": 10,
    }
    changes = {
        goal: float(row["with_importance"]) - float(row["without_importance"])
        for goal, row in rows.items()
    }
    table = out[out.index("changes most") :]
    listed = [
        line.split() for line in table.splitlines() if line.split()[:1] in (["a"], ["b"], ["c"])
    ]
    assert [row[0] for row in listed] == sorted(changes, key=lambda goal: -abs(changes[goal]))
    assert listed[0][-1] == f"{100 * changes[listed[0][0]]:+.1f}"


@pytest.mark.parametrize(
    ("own", "overrides", "message"),
    [([OPEN], {"relabel.relabel": "none"}, "does not relabel"), ([DONE], {}, "with open goals")],
)
def test_choices_of_a_run_that_has_none_say_so(
    own: list[Trajectory], overrides: dict[str, Any], message: str, tmp_path: Path, capsys: Capture
) -> None:
    run = write_run(tmp_path, own, overrides=overrides)
    code, out, _ = command(capsys, "relabel", run, "--choices")
    assert code == 0 and message in out and not (run / "choices.png").exists()
