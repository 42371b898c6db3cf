"""Packed rows against the padded batch they came from."""

from __future__ import annotations

import pytest
import torch
from test_agent_helpers import random_batch, tiny_learner, tiny_spec

from amago.nets.memory.diagnose import diagnose
from amago.nets.memory.transformer import TransformerMemory
from amago.nets.packing import Packing, put, take
from amago.nets.settings import TransformerSettings


def valid_of(lengths: list[int], width: int) -> torch.Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("lengths", [[4, 4, 4], [2, 4, 4, 1, 2], [1], [3, 1, 2]])
def test_packing_keeps_every_valid_row_once_and_pads_it_back(lengths: list[int]) -> None:
    width = 4
    valid = valid_of(lengths, width)
    x = torch.arange(len(lengths) * width * 2).float().view(len(lengths), width, 2) + 1
    packing = Packing(valid)
    packed = packing.pack(x)
    assert len(packed) == len(packing) == sum(lengths)
    assert sorted(packed[:, 0].tolist()) == sorted(x[valid][:, 0].tolist())
    assert torch.equal(packing.pad(packed), x * valid[..., None])


def test_runs_list_sequences_of_equal_length_side_by_side() -> None:
    packing = Packing(valid_of([2, 4, 4, 1, 2], 4))
    assert packing.runs == [(2, 4), (2, 2), (1, 1)]
    assert Packing(valid_of([3, 3], 3)).runs == [(2, 3)]


@pytest.mark.parametrize("lengths", [[4, 4, 4], [2, 4, 4, 1, 2]])
def test_transitions_pair_each_row_with_the_next_of_its_own_sequence(lengths: list[int]) -> None:
    valid = valid_of(lengths, 4)
    place = torch.arange(len(lengths) * 4).view(len(lengths), 4)
    packing = Packing(valid)
    rows = packing.pack(place)
    begin, end = packing.drop_last(rows), packing.drop_first(rows)
    assert torch.equal(end, begin + 1)
    want = [4 * b + t for b, length in enumerate(lengths) for t in range(length - 1)]
    assert sorted(begin.tolist()) == want


def test_take_and_put_have_the_gradients_of_indexing() -> None:
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([4, 0, 2])
    assert torch.autograd.gradcheck(lambda a: take(a, index), x)
    y = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: put(a, index, 5), y)


@pytest.mark.parametrize("memory", ["transformer", "gru", "feedforward"])
def test_a_ragged_batch_and_its_sequences_alone_have_the_same_states(memory: str) -> None:
    learner = tiny_learner(memory=memory)
    agent = learner.agent.eval()
    lengths = [6, 2, 6, 4, 1]
    batch = random_batch(tiny_spec(), lengths)
    with torch.no_grad():
        states = agent.encode(batch)
        for b, rows in enumerate(batch.valid.sum(1).tolist()):
            alone = agent.encode(_sequence(batch, b, rows))
            torch.testing.assert_close(states[b, :rows], alone[0], atol=1e-9, rtol=0)


def _sequence(batch, b, rows):
    cut = {name: getattr(batch, name)[b : b + 1, :rows] for name in
           ("prev_action", "prev_reward", "time", "first", "terminal", "valid")}  # fmt: skip
    obs = {key: value[b : b + 1, :rows] for key, value in batch.obs.items()}
    return type(batch)(obs=obs, **cut)


@pytest.mark.parametrize("position", ["sinusoid", "learned", "rope"])
def test_the_diagnostic_pass_sees_what_the_training_forward_does(position: str) -> None:
    torch.manual_seed(0)
    settings = TransformerSettings(
        model_dim=8, feedforward_dim=16, num_heads=2, num_layers=2, dropout=0.3, position=position
    )
    memory = TransformerMemory(5, settings, context_length=7, horizon=7).double()
    x, time = torch.randn(7, 5, dtype=torch.float64), torch.arange(7)
    layers = diagnose(memory, x, time)
    assert memory.training
    residual: list[torch.Tensor] = []
    for block in memory.blocks:
        block.register_forward_hook(lambda module, inputs, output: residual.append(output))
    with torch.no_grad():
        memory.eval()(x[None], time[None])
    for layer, stream in zip(layers, residual, strict=True):
        assert layer.activation_max == pytest.approx(float(stream.abs().max()), abs=1e-9)
        assert layer.weights.shape == (2, 7, 7)
        torch.testing.assert_close(layer.weights.sum(-1), torch.ones(2, 7).double())
        assert not layer.weights.triu(1).any()
        rows = [[-sum(p * torch.log(p) for p in row if p > 0) for row in head]
                for head in layer.weights]  # fmt: skip
        want = torch.tensor([sum(map(float, head)) / 7 for head in rows]).double()
        torch.testing.assert_close(layer.entropy, want)
