"""The progress rule, instructions as text, and rows of varying length."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amago import ragged
from amago.envs.domains.package_delivery import PackageDelivery
from amago.envs.tasks import draw
from amago.goals import GoalSpec, advance, follow, pad, spec_from

CELLS = GoalSpec(3, 2, low=(0, 0), high=(4, 4))
WORDS = GoalSpec(3, 3, "token", vocabulary=("", "eat", "cow", "place", "plant", "travel", "10"))
FLOATS = GoalSpec(2, 2, low=(-1.0, 0.0), high=(1.0, 0.1), whole=False)

small = st.integers(0, 2)
goal = st.tuples(small, small)
script = st.lists(st.lists(goal, max_size=3, unique=True), min_size=2, max_size=25)


def as_ragged(rows: list[list[tuple[int, int]]]) -> ragged.Ragged:
    values = np.array([goal for row in rows for goal in row], np.uint8).reshape(-1, 2)
    return ragged.of_counts(np.array([len(row) for row in rows]), values)


def slow_progress(asked: list[tuple[int, int]], rows: list[list[tuple[int, int]]]) -> list[int]:
    """The rule in plain words: row 0 is no step, and one step completes one goal at most."""
    done, progress = 0, [0]
    for achieved in rows[1:]:
        if done < len(asked) and asked[done] in achieved:
            done += 1
        progress.append(done)
    return progress


def test_a_step_completes_the_next_goal_and_no_other():
    instruction, num_goals = pad(
        [np.array(rows, np.uint8) for rows in ([[1, 1], [2, 2]], [[1, 1], [2, 2]], [[3, 3]])], 3
    )
    achieved = as_ragged([[(2, 2), (1, 1)], [(2, 2)], []])
    after = advance(instruction, num_goals, np.array([0, 0, 0]), achieved)
    assert after.progress.tolist() == [1, 0, 0]
    assert after.reward.tolist() == [1.0, 0.0, 0.0] and after.reward.dtype == np.float32
    assert not after.complete.any()
    again = advance(instruction, num_goals, after.progress, achieved)
    assert again.progress.tolist() == [2, 0, 0] and again.complete.tolist() == [True, False, False]


def test_a_complete_instruction_stays_complete_and_empty_slots_are_not_goals():
    instruction, num_goals = pad([np.array([[1, 1]], np.uint8)], 3)
    after = advance(instruction, num_goals, np.array([1]), as_ragged([[(0, 0), (1, 1)]]))
    assert after.progress.tolist() == [1] and after.reward.tolist() == [0.0]
    assert after.complete.all()


@settings(max_examples=200, deadline=None)
@given(st.lists(goal, min_size=1, max_size=4), script)
def test_replay_is_the_rule_applied_row_by_row(asked, rows):
    progress = follow(np.array(asked, np.uint8), as_ragged(rows)).progress
    assert progress.tolist() == slow_progress(asked, rows)
    stepwise, done = [0], np.zeros(1, np.int64)
    for row in rows[1:]:
        instruction, count = pad([np.array(asked, np.uint8)], 4)
        done = advance(instruction, count, done, as_ragged([row])).progress
        stepwise.append(int(done[0]))
    assert stepwise == progress.tolist()


@settings(max_examples=200, deadline=None)
@given(st.lists(goal, min_size=1, max_size=4), script)
def test_a_rollout_that_is_followed_again_pays_and_ends_as_it_would_step_by_step(asked, rows):
    whole = follow(np.array(asked, np.uint8), as_ragged(rows))
    instruction, count = pad([np.array(asked, np.uint8)], 4)
    done, reward, complete = np.zeros(1, np.int64), [0.0], [False]
    for row in rows[1:]:
        after = advance(instruction, count, done, as_ragged([row]))
        done = after.progress
        reward.append(float(after.reward[0]))
        complete.append(bool(after.complete[0]))
    assert whole.reward.tolist() == reward and whole.reward.dtype == np.float32
    assert whole.complete.tolist() == complete


@settings(max_examples=100, deadline=None)
@given(script, st.data())
def test_rows_of_varying_length_select_clear_and_join_like_lists(rows, data):
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))

    def lists(values: ragged.Ragged) -> list[list[tuple[int, ...]]]:
        offsets, goals = values
        spans = itertools.pairwise(offsets)
        return [[tuple(goal) for goal in goals[a:b].tolist()] for a, b in spans]

    whole = as_ragged(rows)
    assert lists(ragged.select(whole, np.array(picks, np.int64))) == [rows[i] for i in picks]
    kept = [row for row, keep in zip(rows, mask, strict=True) if keep]
    assert lists(ragged.select(whole, mask)) == kept
    assert lists(ragged.clear(whole, np.flatnonzero(mask))) == [
        [] if gone else row for row, gone in zip(rows, mask, strict=True)
    ]
    assert lists(ragged.concatenate([whole, whole])) == rows + rows
    assert ragged.rows_of(whole).tolist() == [i for i, row in enumerate(rows) for _ in row]


@pytest.mark.parametrize(
    ("spec", "text", "goals"),
    [
        (CELLS, "(3, 2), (1, 2) x2", [[3, 2], [1, 2], [1, 2]]),
        (WORDS, "eat cow, travel 10 10", [[1, 2, 0], [5, 6, 6]]),
        (FLOATS, "(0.5, 0.1), (-1, 0)", [[0.5, 0.1], [-1, 0]]),
        (GoalSpec(4, 1, low=(0,), high=(29,)), "4, 17, 4", [[4], [17], [4]]),
    ],
)
def test_instructions_read_from_and_print_as_text(spec, text, goals):
    read = spec.instruction(text)
    assert read.dtype == spec.dtype and np.array_equal(read, np.array(goals, spec.dtype))
    assert spec.write(read) == text
    assert np.array_equal(spec.instruction(goals), read)
    assert spec_from({**vars(spec), "low": [*spec.low]}) == spec


def test_text_is_read_with_case_brackets_and_blanks_as_people_write_it():
    assert WORDS.write(WORDS.read(" Eat  cow X2 ,travel (10, 10)")) == "eat cow x2, travel 10 10"
    capitals = GoalSpec(2, 2, "token", vocabulary=("", "Go", "North"))
    assert capitals.write(capitals.read("go NORTH, Go")) == "Go North, Go"
    with pytest.raises(ValueError, match="'northh'; did you mean North"):
        capitals.read("go northh")


def test_whole_numbers_are_exact_beyond_what_a_float_holds():
    most = 2**60 - 1
    spec = GoalSpec(2, 2, low=(-1, 0), high=(most, most))
    assert spec.dtype == np.int64
    for text in (f"({most}, 3)", f"({most}, 3.0)", f"({most}, 3e0)"):
        assert spec.read(text).tolist() == [[most, 3]]
    assert spec.write([[most, most - 1]]) == f"({most}, {most - 1})"
    assert spec.goals(np.array([[2.0**59, 3.0]])).tolist() == [[2**59, 3]]
    whole = GoalSpec(1, 1, low=(-(2**63),), high=(2**63 - 1,))
    assert whole.read(f"{-(2**63)}, {2**63 - 1}").tolist() == [[-(2**63)], [2**63 - 1]]
    for bad in (f"({most + 1}, 0)", f"({10**19 - 1}, 0)", f"({10**30}, 0)", "(inf, 0)", "(0.5, 0)"):
        with pytest.raises(ValueError, match="whole numbers in"):
            spec.read(bad)
    for given_ in (np.array([[2.0**60, 0.0]]), [[2**60, 0]], np.array([[2**63, 0]], np.uint64)):
        with pytest.raises(ValueError, match="whole numbers in"):
            spec.goals(given_)
    with pytest.raises(ValueError, match="whole numbers in"):
        whole.goals([[2.0**63]])


def test_an_x_is_a_word_where_no_number_can_follow_it():
    spec = GoalSpec(2, 2, "token", vocabulary=("", "go", "x"))
    assert spec.write(spec.read("go x, x x2")) == "go x, x x2"


def test_empty_slots_after_an_instruction_are_not_goals_to_be_refused():
    instruction, num_goals = pad([WORDS.instruction("eat cow")], 3)
    assert instruction[0, 1:].sum() == 0
    assert WORDS.write(instruction[0, : num_goals[0]]) == "eat cow"


def test_a_place_is_painted_as_done_when_all_packages_for_it_are_delivered():
    task = PackageDelivery()
    task.allocate(1)
    task.reset_lanes(np.array([0]), np.array([3]))
    first, second = task.achievable(0)[:2, 0].tolist()
    task.instruct(0, np.array([[first], [second], [first]]))
    for progress, colours in ((1, ("GOAL", "GOAL")), (2, ("GOAL", "SHADE")), (3, ("SHADE",) * 2)):
        task.progress[0] = progress
        frame = task.render(0)
        for place, colour in zip((first, second), colours, strict=True):
            corner = frame[place // 6 * 48 + 2, place % 6 * 48 + 2]
            assert tuple(corner) == tuple(getattr(draw, colour)), (progress, place)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.floats(-1, 1, width=32)] * 2), min_size=1, max_size=2))
def test_any_numbers_survive_the_way_through_text(goals):
    spec = GoalSpec(2, 2, low=(-1.0, -1.0), high=(1.0, 1.0), whole=False)
    read = spec.goals(goals)
    assert spec.read(spec.write(read)).tobytes() == read.tobytes()


def test_goals_are_stored_in_as_few_bytes_as_their_range_allows():
    assert CELLS.dtype == np.uint8 and WORDS.dtype == np.uint8 and FLOATS.dtype == np.float32
    assert GoalSpec(1, 1, low=(-3,), high=(200,)).dtype == np.int16
    assert GoalSpec(1, 1, low=(0,), high=(300,)).dtype == np.uint16


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: CELLS.instruction("(3, 2)," * 3 + "(1, 1)"), "1 to 3 goals, got 4"),
        (lambda: CELLS.instruction([]), "1 to 3 goals, got 0"),
        (lambda: CELLS.instruction("(3, 5)"), "whole numbers in"),
        (lambda: CELLS.goals([[1.5, 1]]), "whole numbers in"),
        (lambda: CELLS.goals([[1, 1, 1]]), "goals of 2 numbers each"),
        (lambda: CELLS.read("(a, 1)"), "expected a number in a goal, got 'a'"),
        (lambda: CELLS.read("(1, 1), "), "separated by commas"),
        (lambda: WORDS.read("eat caw"), "no goal has the word 'caw'; did you mean cow"),
        (lambda: FLOATS.goals([[float("nan"), 0]]), "expected goals of numbers"),
        (lambda: GoalSpec(0, 1, low=(0,), high=(1,)), "1 to 255"),
        (lambda: GoalSpec(1, 2, low=(0,), high=(1,)), "2 bounds in low"),
        (lambda: GoalSpec(1, 2, "token", vocabulary=("a", "b")), "different words after the first"),
        (lambda: GoalSpec(1, 2, "token", vocabulary=("", "a b")), "without blanks"),
        (lambda: GoalSpec(1, 2, "token", vocabulary=("", "Go", "a", "go")), r"\['Go', 'go'\]"),
        (lambda: GoalSpec(1, 2, "token", vocabulary=("", "go", "x2")), r"no counts.*\['x2'\]"),
        (lambda: GoalSpec(1, 2, "token", vocabulary=("", "go", "X2")), r"no counts.*\['X2'\]"),
        (lambda: GoalSpec(1, 3, "token", vocabulary=("", "x", "2")), r"no counts.*\['x'\]"),
        (lambda: WORDS.read("eat x0, cow"), "once or more often, got 'eat x0'; leave it out"),
        (lambda: CELLS.instruction("(1, 1) x0"), "once or more often"),
        (lambda: WORDS.goals([[1, 2, 0], [0, 0, 0]]), "one word or more"),
        (lambda: WORDS.instruction([[0, 1, 2]]), "one word or more"),
        (lambda: WORDS.write([[1, 0, 2]]), "only after them"),
        (lambda: GoalSpec(1, 2, low=(0, 4), high=(1, 3)), "at most that in high"),
        (lambda: GoalSpec(1, 1, low=(0.5,), high=(0.1,), whole=False), "at most that in high"),
        (lambda: GoalSpec(1, 1, low=(0,), high=(2**63,)), "64 bits"),
        (lambda: GoalSpec(1, 1, low=(0,), high=(float("inf"),)), "64 bits"),
        (lambda: GoalSpec(1, 1, low=(0,), high=(0.5,)), "whole=False"),
    ],
)
def test_goals_that_cannot_be_are_refused_with_what_to_do(bad, message):
    with pytest.raises(ValueError, match=message):
        bad()
