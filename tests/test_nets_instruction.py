"""What the networks see of an instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from amago.goals import GoalSpec
from amago.nets.instruction import (
    _ABSENT,
    _CURRENT,
    _DONE,
    _PENDING,
    _TOKEN_DIM,
    InstructionEncoder,
    _slot_status,
)
from amago.nets.settings import InstructionSettings
from amago.types import Batch

NUMBERS = GoalSpec(4, 2, low=(0, 10), high=(10, 30), whole=False)
FEW = GoalSpec(2, 2, low=(-1, 4), high=(1, 5))
WORDS = GoalSpec(3, 2, kind="token", vocabulary=("", "eat", "cow", "make", "sword"))


def asked(goals: list, num_goals: list[int], progress: list[int]) -> Batch:
    """One row per instruction, as acting makes them."""
    none = torch.zeros(len(goals))
    return Batch(
        {}, none.long(), none, none.long(), none.bool(), none.bool(), (1,) * len(goals),
        torch.tensor(goals), torch.tensor(num_goals), torch.tensor(progress),
    )  # fmt: skip


def test_slots_are_done_current_pending_or_absent() -> None:
    status = _slot_status(4, torch.tensor([3, 3, 3, 1]), torch.tensor([0, 1, 3, 0]))
    assert status.tolist() == [
        [_CURRENT, _PENDING, _PENDING, _ABSENT],
        [_DONE, _CURRENT, _PENDING, _ABSENT],
        [_DONE, _DONE, _DONE, _ABSENT],
        [_CURRENT, _ABSENT, _ABSENT, _ABSENT],
    ]


def seen_by(encoder: InstructionEncoder, rows: Batch) -> torch.Tensor:
    """The slots [M, k, width] that enter the network."""
    caught = []
    inner = encoder.rnn if encoder.rnn is not None else encoder.net
    inner.register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    encoder(rows, torch.float32)
    return caught[0].view(len(rows), rows.instruction.shape[1], -1)


@pytest.mark.parametrize("kind", ["mlp", "rnn"])
def test_numbers_are_scaled_and_absent_slots_show_nothing(kind: str) -> None:
    encoder = InstructionEncoder(NUMBERS, InstructionSettings(kind=kind, hidden=(8, 4)))
    slots = seen_by(encoder, asked([[[0, 30], [5, 10], [10, 20], [0, 0]]], [3], [1]))
    want = [
        [-1, 1, 0, 0, 0, 1],
        [0, -1, 0, 0, 1, 0],
        [1, 0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0, 0],
    ]
    assert slots[0].tolist() == want


def test_whole_numbers_of_few_values_are_one_hot_as_well() -> None:
    encoder = InstructionEncoder(FEW, InstructionSettings(hidden=(8, 4)))
    slots = seen_by(encoder, asked([[[-1, 5], [0, 4]]], [2], [0]))
    assert slots[0].tolist() == [
        [-1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0],
        [0, -1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0],
    ]
    many = GoalSpec(2, 1, low=(0,), high=(64,))
    assert InstructionEncoder(many, InstructionSettings()).choices.numel() == 0


def test_without_planning_only_the_current_goal_and_done_marks_are_shown() -> None:
    settings = InstructionSettings(hidden=(8, 4), hide_plan=True)
    encoder = InstructionEncoder(NUMBERS, settings)
    slots = seen_by(encoder, asked([[[0, 30], [5, 10], [10, 20], [0, 0]]], [3], [1]))
    assert slots[0].tolist() == [
        [0, 0, 0, 0, 0, 1],
        [0, -1, 0, 0, 1, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
    ]
    later = asked([[[0, 30], [5, 10], [3, 27], [0, 0]]], [3], [1])
    first = asked([[[0, 30], [5, 10], [10, 20], [0, 0]]], [3], [1])
    assert torch.equal(encoder(later, torch.float32), encoder(first, torch.float32))
    planner = InstructionEncoder(NUMBERS, InstructionSettings(hidden=(8, 4)))
    assert not torch.equal(planner(later, torch.float32), planner(first, torch.float32))


@pytest.mark.parametrize("kind", ["mlp", "rnn"])
@pytest.mark.parametrize("hide_plan", [False, True])
def test_the_current_goal_is_part_of_the_output(hide_plan: bool, kind: str) -> None:
    settings = InstructionSettings(kind=kind, hidden=(8, 4), hide_plan=hide_plan)
    encoder = InstructionEncoder(FEW, settings)
    goals = [[[-1, 5], [0, 4]]]
    for progress, want in enumerate(
        ([-1, 1, 1, 0, 0, 0, 1, 0], [0, -1, 0, 1, 0, 1, 0, 0], [0] * 8)
    ):
        encoded = encoder(asked(goals, [2], [progress]), torch.float32)
        assert encoded.shape == (1, encoder.output_dim)
        assert encoded[0, 4:].tolist() == want


@pytest.mark.parametrize("kind", ["mlp", "rnn"])
def test_words_are_embedded_and_their_order_matters(kind: str) -> None:
    torch.manual_seed(0)
    encoder = InstructionEncoder(WORDS, InstructionSettings(kind=kind, hidden=(8, 4)))
    one = encoder(asked([[[1, 2], [3, 4], [0, 0]]], [2], [0]), torch.float32)
    two = encoder(asked([[[3, 4], [1, 2], [0, 0]]], [2], [0]), torch.float32)
    beside = 2 * _TOKEN_DIM  # the current goal's two words
    assert one.shape == (1, encoder.output_dim) == (1, 4 + beside)
    assert not torch.allclose(one, two)


def test_the_rnn_reads_word_by_word_with_the_status_of_each_goal() -> None:
    settings = InstructionSettings(kind="rnn", hidden=(8, 4))
    encoder = InstructionEncoder(WORDS, settings)
    caught = []
    assert encoder.rnn is not None and encoder.tokens is not None
    encoder.rnn.register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    encoder(asked([[[1, 2], [3, 4], [0, 0]]], [2], [1]), torch.float32)
    (words,) = caught
    assert words.shape == (1, 6, _TOKEN_DIM + 4)
    status = [_DONE, _DONE, _CURRENT, _CURRENT, _ABSENT, _ABSENT]
    assert words[0, :, _TOKEN_DIM:].argmax(-1).tolist() == status
    assert torch.equal(words[0, :4, :_TOKEN_DIM], encoder.tokens(torch.tensor([1, 2, 3, 4])))
    assert not words[0, 4:, :_TOKEN_DIM].any()


@pytest.mark.parametrize("kind", ["number", "token"])
def test_the_gru_stops_at_the_end_of_the_instruction(kind: str) -> None:
    torch.manual_seed(0)
    spec = WORDS if kind == "token" else FEW
    encoder = InstructionEncoder(spec, InstructionSettings(kind="rnn", hidden=(8, 4)))
    goals = torch.tensor([[[1.0, 4.0], [0.0, 0.0]]]) if kind == "number" else torch.ones(1, 2, 2)
    alone = encoder.encode(goals[:, :1], torch.tensor([1]), torch.tensor([0]), torch.float32)
    for slots in (2, 5):
        more = torch.cat([goals[:, :1], torch.rand(1, slots - 1, 2).round()], 1)
        padded = encoder.encode(more, torch.tensor([1]), torch.tensor([0]), torch.float32)
        torch.testing.assert_close(padded, alone)
    if kind == "token":  # "eat" ends where its only word does
        short = torch.tensor([[[1.0, 0.0]]])
        cut = encoder.encode(short, torch.tensor([1]), torch.tensor([0]), torch.float32)
        narrow = InstructionEncoder(replace(WORDS, size=1), InstructionSettings("rnn", (8, 4)))
        narrow.load_state_dict(encoder.state_dict())
        word = narrow.encode(short[..., :1], torch.tensor([1]), torch.tensor([0]), torch.float32)
        torch.testing.assert_close(cut[:, :4], word[:, :4])


def test_the_grus_code_tells_goals_in_the_first_slot_apart_as_well_as_in_the_last() -> None:
    torch.manual_seed(0)
    letters = tuple("abcdefghijklmnop")
    spec = GoalSpec(5, 3, kind="token", vocabulary=("", *letters))
    encoder = InstructionEncoder(spec, InstructionSettings(kind="rnn", hidden=(32, 16)))
    goals = torch.randint(1, len(letters), (60, 3)).float()

    def spread(instruction: torch.Tensor, num_goals: int) -> float:
        count = torch.full((60,), num_goals)
        code = encoder.encode(instruction, count, count - 1, torch.float32)[:, :16]
        return float(code.detach().std(0).mean())

    first = torch.zeros(60, 5, 3)
    first[:, 0] = goals
    last = torch.ones(60, 5, 3)
    last[:, 4] = goals
    assert spread(first, 1) > 0.5 * spread(last, 5) > 0


def windows(lengths: tuple[int, ...], double: bool) -> Batch:
    """Sequences with an instruction each, of 1 to 3 goals, completed one by one."""
    generator = torch.Generator().manual_seed(0)
    goals = torch.randint(1, 5, (len(lengths), 3, 2), generator=generator).float()
    num_goals = torch.randint(1, 4, (len(lengths),), generator=generator)
    goals[torch.arange(3) >= num_goals[:, None]] = 0.0
    progress = [torch.arange(n) * int(k) // n for n, k in zip(lengths, num_goals, strict=True)]
    rows = torch.zeros(sum(lengths), dtype=torch.float64 if double else torch.float32)
    return Batch(
        {}, rows.long(), rows, rows.long(), rows.bool(), rows.bool(), lengths,
        goals.to(rows.dtype), num_goals, torch.cat(progress),
    )  # fmt: skip


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-12), (False, 1e-6)])
@pytest.mark.parametrize("lengths", [(9, 9, 7, 5), (2, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("kind", ["mlp", "rnn"])
def test_rows_of_a_batch_are_encoded_as_if_each_were_alone(kind, lengths, double, tolerance):
    """Values and gradients of many rows, of few, and of acting, against row by row."""
    torch.manual_seed(0)
    encoder = InstructionEncoder(WORDS, InstructionSettings(kind=kind, hidden=(8, 4)))
    encoder = encoder.double() if double else encoder
    batch = windows(lengths, double)
    dtype = batch.prev_reward.dtype
    weights = torch.randn(len(batch), encoder.output_dim, dtype=dtype)
    together = encoder(batch, dtype)
    (together * weights).sum().backward()
    gradients = [p.grad.clone() for p in encoder.parameters()]
    encoder.zero_grad()
    owners = [b for b, n in enumerate(lengths) for _ in range(n)]
    for row, b in enumerate(owners):
        one = encoder.encode(
            batch.instruction[b : b + 1], batch.num_goals[b : b + 1],
            batch.progress[row : row + 1], dtype,
        )  # fmt: skip
        torch.testing.assert_close(together[row], one[0], atol=tolerance, rtol=tolerance)
        (one[0] * weights[row]).sum().backward()
    for gradient, parameter in zip(gradients, encoder.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=10 * tolerance, rtol=1e-5)


def test_long_windows_encode_every_stage_of_an_instruction_once() -> None:
    encoder = InstructionEncoder(WORDS, InstructionSettings(hidden=(8, 4)))
    heights = []
    encoder.net.register_forward_pre_hook(lambda _, args: heights.append(len(args[0])))
    for lengths in ((9, 9, 7, 5), (90, 90, 90, 90), (2, 1, 1), (1, 1, 1, 1)):
        encoder(windows(lengths, double=False), torch.float32)
    assert heights == [16, 16, 4, 4]  # four sequences with 0, 1, 2 or 3 goals complete; else rows
