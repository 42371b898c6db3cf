"""How many updates until the memory finds a lookup, without the noise of RL.

    python benchmarks/lookup.py --task cards --feedback reward --batch 128 --seeds 0 1 2

`places`: N places with random contents are shown once each, then asked for in another order.
`cards`: cards with faces are turned at random; where a face was seen before, which other place has
it? `turns`: the same as a game of two cards a turn, in which a guess may be lucky. `label` teaches
the right place, `reward` whether one random place was right, as a critic is taught. Ends when 90%
of the answers are right on a batch of its own, or after `--updates`. `--recall W` adds a second
loss of weight W: in a copy of half of the games the place or the face of every fifth row is
hidden, and has to be told from what was seen before.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from amago.config import literal
from amago.nets.layers import mlp, power_iterate
from amago.nets.memory.transformer import TransformerMemory
from amago.nets.sequences import Sequences
from amago.nets.settings import TransformerSettings

SMALL = TransformerSettings(model_dim=64, num_heads=2, num_layers=2, dropout=0.0)
CONTENTS = 4
"""What a place may hold, in the task `places`."""


@dataclass(frozen=True)
class Questions:
    """Rows [B, T, F], the right answers [B, T], and where there is one."""

    rows: Tensor
    answers: Tensor
    asked: Tensor
    tried: Tensor | None = None
    """The place that was turned next, [B, T], where the game says which."""
    paid: Tensor | None = None
    """Whether that was a match, [B, T], seen before or not."""


def places(batch: int, size: int, length: int) -> Questions:
    """Every place with its content, then every place without."""
    order = torch.rand(2, batch, size).argsort(-1)
    contents = torch.randint(CONTENTS, (batch, size))
    where = torch.cat((order[0], order[1]), 1)
    what = contents.gather(1, where)
    shown = F.one_hot(what, CONTENTS).float()
    shown[:, size:] = 0.0
    asked = (torch.arange(2 * size) >= size).expand(batch, -1)
    return Questions(torch.cat((F.one_hot(where, size).float(), shown), -1), what, asked)


def cards(batch: int, size: int, length: int) -> Questions:
    """Cards turned at random; asked where the other card of the face lies, once it was seen."""
    faces = (torch.arange(size) // 2)[torch.rand(batch, size).argsort(-1)]
    where = torch.randint(size, (batch, length))
    what = faces.gather(1, where)
    same = faces[:, None, :] == what[:, :, None]
    other = (same & ~F.one_hot(where, size).bool()).float().argmax(-1)
    seen = F.one_hot(where, size).cumsum(1) > 0
    asked = seen.gather(-1, other[..., None])[..., 0]
    rows = torch.cat((F.one_hot(where, size), F.one_hot(what, size // 2)), -1).float()
    return Questions(rows, other, asked)


def turns(batch: int, size: int, length: int) -> Questions:
    """Two cards a turn: after every other row one card lies open, and its match pays."""
    faces = (torch.arange(size) // 2)[torch.rand(batch, size).argsort(-1)]
    where = torch.randint(size, (batch, length))
    second = where[:, 1::2]
    again = second == where[:, : 2 * second.shape[1] : 2]
    where[:, 1::2] = torch.where(again, (second + 1) % size, second)
    what = faces.gather(1, where)
    is_open = (torch.arange(length) % 2 == 0).expand(batch, -1)
    same = faces[:, None, :] == what[:, :, None]
    other = (same & ~F.one_hot(where, size).bool()).float().argmax(-1)
    seen = F.one_hot(where, size).cumsum(1) > 0
    asked = seen.gather(-1, other[..., None])[..., 0] & is_open
    shown = (F.one_hot(where, size), F.one_hot(what, size // 2), is_open[..., None])
    tried = torch.cat((where[:, 1:], where[:, :1]), 1)
    paid = (tried == other) & is_open
    paid[:, -1] = False
    return Questions(torch.cat(shown, -1).float(), other, asked, tried, paid)


TASKS = {"places": places, "cards": cards, "turns": turns}


class Reader(nn.Module):
    """A row encoder, the memory and a head, as the agent has them."""

    def __init__(self, width: int, outputs: int, settings: TransformerSettings) -> None:
        super().__init__()
        self.encoder = nn.Sequential(mlp((width, 64, 64)), nn.LayerNorm(64))
        self.memory = TransformerMemory(64, settings, context_length=1000, horizon=1000)
        self.head = mlp((settings.model_dim, 128, 128, outputs))
        self.recall = mlp((settings.model_dim, 128, width))

    def states(self, rows: Tensor) -> Tensor:
        batch, length = rows.shape[:2]
        encoded, time = self.encoder(rows).flatten(0, 1), torch.arange(length).repeat(batch)
        states: Tensor = self.memory(encoded, time, Sequences([length] * batch))
        return states.unflatten(0, (batch, length))

    def forward(self, rows: Tensor) -> Tensor:
        answers: Tensor = self.head(self.states(rows))
        return answers


def loss_of(output: Tensor, questions: Questions, feedback: str) -> Tensor:
    if feedback == "label":
        return F.cross_entropy(output[questions.asked], questions.answers[questions.asked])
    tried, right = questions.tried, questions.paid
    if tried is None or right is None:
        tried = torch.randint(output.shape[-1], questions.answers.shape)
        right = (tried == questions.answers) & questions.asked
    value = output.gather(-1, tried[..., None])[..., 0]
    spread = right.float().std()
    return ((value - (right.float() - right.float().mean()) / spread) ** 2).mean()


def recall_loss(reader: Reader, rows: Tensor, size: int) -> Tensor:
    """Cross-entropy of hidden places and faces, of half of the games of cards."""
    rows = rows[: len(rows) // 2]
    fields = (slice(0, size), slice(size, size + size // 2))
    draw = torch.rand(rows.shape[:2])
    hidden = (draw < 0.1, (draw >= 0.1) & (draw < 0.2))
    shown = rows.clone()
    for field, rows_hidden in zip(fields, hidden, strict=True):
        shown[..., field][rows_hidden] = 0.0
    told = reader.recall(reader.states(shown))
    losses = [
        F.cross_entropy(told[..., field][at], rows[..., field][at].argmax(-1), reduction="sum")
        for field, at in zip(fields, hidden, strict=True)
    ]
    return torch.stack(losses).sum() / torch.stack(hidden).sum()


def updates_until_found(options: argparse.Namespace, seed: int) -> tuple[int | None, float, float]:
    """Updates until 90% are right, the last share of right answers, seconds per update."""
    torch.manual_seed(seed)
    settings = replace(SMALL, **{k: literal(v) for k, v in (p.split("=") for p in options.set)})
    make = TASKS[options.task]
    first = make(2, options.size, options.length)
    outputs = CONTENTS if options.task == "places" else options.size
    reader = Reader(first.rows.shape[-1], outputs, settings)
    optimizer = torch.optim.AdamW(
        reader.parameters(), lr=options.learning_rate, betas=(0.9, options.beta2)
    )
    begin, right = time.perf_counter(), 0.0
    for update in range(1, options.updates + 1):
        rate = options.learning_rate * min(1.0, update / 500 if options.warmup else 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate
        questions = make(options.batch, options.size, options.length)
        power_iterate(reader)
        loss = loss_of(reader(questions.rows), questions, options.feedback)
        if options.recall:
            loss = loss + options.recall * recall_loss(reader, questions.rows, options.size)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        if update % 50 == 0:
            with torch.no_grad():
                test = make(128, options.size, options.length)
                hits = reader(test.rows).argmax(-1) == test.answers
                right = float(hits[test.asked].float().mean())
            if right >= 0.9:
                return update, right, (time.perf_counter() - begin) / update
    return None, right, (time.perf_counter() - begin) / options.updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="places", choices=tuple(TASKS))
    parser.add_argument("--feedback", default="label", choices=("label", "reward"))
    parser.add_argument("--size", type=int, default=12, help="places, or cards")
    parser.add_argument("--length", type=int, default=24, help="rows of a card game")
    parser.add_argument("--batch", type=int, default=24, help="sequences per update")
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--beta2", type=float, default=0.999)
    parser.add_argument("--warmup", action="store_true", help="over 500 updates")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--set", nargs="*", default=[], help="position=rope num_heads=4 …")
    parser.add_argument("--recall", type=float, default=0.0, help="games of cards only")
    options = parser.parse_args()
    if options.recall and options.task == "places":
        parser.error("--recall is for --task cards and --task turns")
    torch.set_num_threads(1)
    for seed in options.seeds:
        found, right, seconds = updates_until_found(options, seed)
        print(f"seed {seed}: {found or 'not found'}, {right:.2f} right, {seconds * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
