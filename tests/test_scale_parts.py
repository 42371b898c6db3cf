"""Gradient accumulation: an update in parts is the update of the whole batch."""

from __future__ import annotations

import pytest
import torch
from test_agent_helpers import random_batch, tiny_learner, tiny_spec
from test_replay_helpers import same, sequences
from test_scale_helpers import CASES, Case, assert_same_learning, learn

from amago.agent.settings import OptimSettings
from amago.agent.share import share_batch
from amago.nets.place import Place, draw, placed


@pytest.mark.parametrize(("name", "accumulate"), [*((name, 2) for name in CASES), ("discrete", 3)])
def test_updates_in_parts_are_those_of_the_whole_batch(name, accumulate):
    case = CASES[name]
    whole = learn(case, lambda batch: share_batch(batch)[0])
    parts = learn(case, lambda batch: share_batch(batch, accumulate=accumulate)[0])
    assert_same_learning(case, parts, whole)


def test_step_makes_as_many_parts_as_the_settings_say():
    learner, made = tiny_learner(optim__accumulate=3), []
    learner.learn = made.append
    learner.step(random_batch(tiny_spec(), [5, 4, 4, 3]))
    assert [part.lengths for part in made[0].parts] == [(5, 3), (4,), (4,)]


def test_shares_and_parts_hold_every_sequence_once():
    batch = Case(goals=True).batch(0)
    alone = sequences(batch)
    for num_ranks, accumulate in ((1, 3), (2, 1), (2, 3), (3, 2)):
        shares = share_batch(batch, num_ranks, accumulate)
        dealt = [number for rank in range(num_ranks) for number in range(rank, 7, num_ranks)]
        held = [sequence for share in shares for sequence in sequences(share.batch)]
        assert all(same(held[i], alone[number]) for i, number in enumerate(dealt))
        for share in shares:
            parts = [part.of(share.batch) for part in share.parts] or [share.batch]
            assert sum(len(part) for part in parts) == len(share.batch)
            if share.place is not None:
                rows = batch.prev_reward[share.place.rows]
                assert torch.equal(rows, share.batch.prev_reward)
                assert share.place.num_transitions == len(batch) - len(batch.lengths)


def test_a_part_knows_where_its_rows_lie_in_the_whole_batch():
    batch = Case().batch(0)
    every, action = [], torch.arange(len(batch))
    ends = {sum(batch.lengths[: n + 1]) - 1 for n in range(len(batch.lengths))}
    begins = action[[row not in ends for row in range(len(batch))]]
    for share in share_batch(batch, 2, 3):
        for part in share.parts:
            place = share.place_of(part)
            assert torch.equal(batch.prev_reward[place.rows], part.of(share.batch).prev_reward)
            assert {int(row) for row in begins[place.transitions]} < {*place.rows.tolist()}
            every += place.transitions.tolist()
    assert sorted(every) == list(range(len(begins)))


def test_a_batch_of_fewer_windows_than_parts_says_what_to_change():
    batch = random_batch(tiny_spec(), [4, 3, 2])
    with pytest.raises(ValueError, match=r"at least 4 windows for 2 learners × --optim.accumulate"):
        share_batch(batch, 2, 2)
    with pytest.raises(ValueError, match=r"--optim\.accumulate must be at least 1, got 0"):
        OptimSettings(accumulate=0)


def test_random_numbers_of_a_part_are_those_of_its_rows_in_the_whole_batch():
    torch.manual_seed(0)
    whole = torch.rand(5, 2), torch.rand(2, 3, 1)
    place = Place(torch.tensor([4, 0]), torch.tensor([2]), 5, 3)
    torch.manual_seed(0)
    with placed(place):
        assert torch.equal(draw(torch.rand, (2, 2)), whole[0][[4, 0]])
        assert torch.equal(draw(torch.rand, (2, 1, 1), dim=1), whole[1][:, [2]])
        with pytest.raises(ValueError, match="expected 2 rows or 1 transitions"):
            draw(torch.rand, (4, 2))


def test_a_batch_with_nan_is_skipped_whole_wherever_it_is_dealt():
    batch = Case().batch(0)
    batch.prev_reward[0] = torch.nan
    assert [share.finite for share in share_batch(batch, 2, 2)] == [False, False]
