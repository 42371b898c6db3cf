"""Rows that lie sequence after sequence."""

from __future__ import annotations

import pytest
import torch
from test_agent_helpers import random_batch, sequences, tiny_learner, tiny_spec

from amago.nets.memory.diagnose import diagnose
from amago.nets.memory.transformer import TransformerMemory
from amago.nets.sequences import Sequences, _put, _take
from amago.nets.settings import TransformerSettings

LENGTHS = [[4, 4, 4], [4, 4, 2, 2, 1], [1], [3, 1, 2]]


def numbered(lengths: list[int]) -> torch.Tensor:
    """Rows that know their sequence and place, [M, 2]."""
    return torch.tensor([[b, t] for b, length in enumerate(lengths) for t in range(length)])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_padding_puts_sequences_side_by_side_and_unpadding_takes_them_back(lengths) -> None:
    places = Sequences(lengths)
    rows = 1 + numbered(lengths)
    padded = places.pad(rows)
    assert padded.shape == (len(lengths), max(lengths), 2)
    for b, length in enumerate(lengths):
        assert padded[b, :length].tolist() == [[b + 1, t + 1] for t in range(length)]
        assert not padded[b, length:].any()
    assert torch.equal(places.unpad(padded), rows)


def test_runs_list_neighbours_of_equal_length() -> None:
    assert Sequences([4, 4, 2, 2, 1]).runs == [(2, 4), (2, 2), (1, 1)]
    assert Sequences([3, 3]).runs == [(2, 3)]
    assert Sequences([2, 3, 2]).runs == [(1, 2), (1, 3), (1, 2)]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_transitions_pair_each_row_with_the_next_of_its_own_sequence(lengths) -> None:
    rows, places = numbered(lengths), Sequences(lengths)
    begin, end = places.drop_last(rows), places.drop_first(rows)
    assert begin.tolist() == [[b, t] for b, n in enumerate(lengths) for t in range(n - 1)]
    assert torch.equal(end, begin + torch.tensor([0, 1]))


@pytest.mark.parametrize("lengths", LENGTHS)
def test_every_row_has_an_owner_and_every_sequence_one_last_row(lengths) -> None:
    rows, places = numbered(lengths), Sequences(lengths)
    assert torch.equal(places.owners(), rows[:, 0])
    last = rows[places.last_rows()]
    assert last.tolist() == [[b, n - 1] for b, n in enumerate(lengths)]


def test_take_and_put_have_the_gradients_of_indexing() -> None:
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([4, 0, 2])
    assert torch.autograd.gradcheck(lambda a: _take(a, index), x)
    y = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: _put(a, index, 5), y)


@pytest.mark.parametrize("memory", ["transformer", "gru", "feedforward"])
def test_a_ragged_batch_and_its_sequences_alone_have_the_same_states(memory: str) -> None:
    agent = tiny_learner(memory=memory).agent.eval()
    batch = random_batch(tiny_spec(), [6, 2, 6, 4, 1])
    with torch.no_grad():
        states = agent.states(batch).split(batch.lengths)
        for got, part in zip(states, sequences(batch), strict=True):
            torch.testing.assert_close(got, agent.states(part), atol=1e-9, rtol=0)


@pytest.mark.parametrize("previous_row", [False, True])
@pytest.mark.parametrize("position", ["sinusoid", "learned", "rope"])
def test_the_diagnostic_pass_sees_what_the_training_forward_does(
    position: str, previous_row: bool
) -> None:
    torch.manual_seed(0)
    settings = TransformerSettings(
        model_dim=8, num_heads=2, num_layers=2, dropout=0.3, position=position,
        previous_row=previous_row,
    )  # fmt: skip
    memory = TransformerMemory(5, settings, context_length=7, horizon=7).double()
    x, time = torch.randn(7, 5, dtype=torch.float64), torch.arange(7)
    layers = diagnose(memory, x, time)
    assert memory.training
    residual: list[torch.Tensor] = []
    for block in memory.blocks:
        block.register_forward_hook(lambda module, inputs, output: residual.append(output))
    with torch.no_grad():
        memory.eval()(x, time, Sequences([7]))
    for layer, stream in zip(layers, residual, strict=True):
        assert layer.activation_max == pytest.approx(float(stream.abs().max()), abs=1e-9)
        assert layer.weights.shape == (2, 7, 7)
        torch.testing.assert_close(layer.weights.sum(-1), torch.ones(2, 7).double())
        assert not layer.weights.triu(1).any()
        rows = [[-sum(p * torch.log(p) for p in row if p > 0) for row in head]
                for head in layer.weights]  # fmt: skip
        want = torch.tensor([sum(map(float, head)) / 7 for head in rows]).double()
        torch.testing.assert_close(layer.entropy, want)
