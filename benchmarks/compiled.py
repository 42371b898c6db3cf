"""Does torch.compile make the Transformer faster? Acting and learning, in turn with eager calls.

    python benchmarks/compiled.py [--threads 1] [--rounds 7]

Attention itself stays as it is (its cache and its packed rows change shape all the time); all that
happens to single rows between two attentions is compiled: with shapes fixed while acting, dynamic
while learning. Checks that both compute the same, then prints milliseconds and ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from amago.bench.timing import Effort, interleave
from amago.nets.memory.transformer import Block, Mix, TransformerMemory, cached_mix, causal_mix
from amago.nets.sequences import Sequences
from amago.nets.settings import TransformerSettings
from amago.process import prepare_process

WIDTH = 64
"""Of what the encoder says of a row."""
ACTING = ((128, 24), (128, 512), (64, 512))
LEARNING = ((128, 24, 128), (256, 24, 100))


def enter(block: Block, x: Tensor, qkv: Tensor) -> Tensor:
    """All before attention; weights come ready-made, because acting computes them once."""
    return F.linear(block.norm_attention(x), qkv)


def leave(
    block: Block, x: Tensor, mixed: Tensor, out: Tensor, widen: Tensor, narrow: Tensor
) -> Tensor:
    """All after it."""
    scaled = (mixed * block.attention.head_scale).flatten(1)
    x = x + block.norm_mixed(F.linear(scaled, out, block.attention.out.bias))
    hidden = F.linear(block.norm_feedforward(x), widen, block.widen.bias)
    hidden = block.norm_hidden(F.leaky_relu(hidden))
    return x + block.dropout(F.linear(hidden, narrow, block.narrow.bias))


class Compiled:
    """The passes of a memory with sinusoids, its row-wise parts compiled."""

    def __init__(self, memory: TransformerMemory, dynamic: bool) -> None:
        self.memory = memory
        self.enter = torch.compile(enter, dynamic=dynamic)
        self.leave = torch.compile(leave, dynamic=dynamic)

    def step(self, x: Tensor, time: Tensor, state: object) -> tuple[Tensor, object]:
        state.advance(time.numpy() == 0)
        mixes = [cached_mix(state, layer) for layer in range(len(self.memory.blocks))]
        return self._pass(x, time, mixes), state

    def forward(self, x: Tensor, time: Tensor, sequences: Sequences) -> Tensor:
        return self._pass(x, time, [causal_mix(sequences)] * len(self.memory.blocks))

    def _pass(self, x: Tensor, time: Tensor, mixes: Sequence[Mix]) -> Tensor:
        x, _ = self.memory.embed_rows(x, time)
        for block, mix in zip(self.memory.blocks, mixes, strict=True):
            attention = block.attention
            qkv = self.enter(block, x, attention.qkv.effective_weight())
            heads = qkv.view(len(x), 3, attention.num_heads, -1).unbind(1)
            layers = (attention.out, block.widen, block.narrow)
            weights = [layer.effective_weight() for layer in layers]
            x = self.leave(block, x, mix(*heads), *weights)
        return self.memory.norm(x)


def make_memory(dim: int, context_length: int) -> TransformerMemory:
    """Without dropout, so that both ways can be compared."""
    torch.manual_seed(0)
    settings = TransformerSettings(model_dim=dim, num_heads=8, num_layers=2, dropout=0.0)
    return TransformerMemory(WIDTH, settings, context_length=context_length, horizon=context_length)


@torch.no_grad()
def act(step: Callable[..., tuple[Tensor, object]], memory: TransformerMemory, x: Tensor) -> Tensor:
    """A rollout of T-Maze's length."""
    state = memory.initial_state(len(x))
    for now in range(101):
        out, state = step(x, torch.full((len(x),), now), state)
    return out


def learn(
    forward: Callable[..., Tensor], memory: TransformerMemory, x: Tensor, count: int, length: int
) -> Tensor:
    """One forward and backward pass over `count` windows."""
    sequences = Sequences([length] * count)
    out = forward(x, torch.arange(length).repeat(count), sequences)
    memory.zero_grad()
    out.square().mean().backward()
    return out


def compare(
    title: str, eager: Callable[[], Tensor], compiled: Callable[[], Tensor], effort: Effort
) -> None:
    torch.testing.assert_close(compiled(), eager(), atol=1e-4, rtol=1e-4)
    timings = interleave({"eager": eager, "compiled": compiled}, effort)
    before, after = (timings[name].seconds for name in ("eager", "compiled"))
    mark = "~" if any(timing.disturbed for timing in timings.values()) else ""
    print(
        f"{title:<28} {1e3 * before:8.1f} ms, compiled {1e3 * after:8.1f} ms, "
        f"{mark}{before / after:.2f} times as fast",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    prepare_process(options.threads)
    effort = Effort(rounds=options.rounds, max_rounds=2 * options.rounds)
    for dim, lanes in ACTING:
        memory = make_memory(dim, 101).eval()
        x = torch.randn(lanes, WIDTH)
        steps = (memory.step, Compiled(memory, dynamic=False).step)
        compare(
            f"101 steps, d={dim}, {lanes} lanes",
            *(partial(act, step, memory, x) for step in steps),
            effort,
        )
    for dim, count, length in LEARNING:
        memory = make_memory(dim, length).train()
        x = torch.randn(count * length, WIDTH)
        passes = (memory.forward, Compiled(memory, dynamic=True).forward)
        compare(
            f"learning, d={dim}, {count}×{length}",
            *(partial(learn, forward, memory, x, count, length) for forward in passes),
            effort,
        )


if __name__ == "__main__":
    main()
