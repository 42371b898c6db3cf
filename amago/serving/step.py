"""One step of an agent as a pure function of tensors: what `amago export` writes."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from amago.agent.agent import Agent, action_mask
from amago.nets.distributions import TanhGaussian
from amago.nets.layers import SigmaLinear
from amago.nets.memory.feedforward import FeedforwardMemory
from amago.nets.memory.gru import GRUMemory
from amago.nets.memory.interface import Memory
from amago.nets.memory.transformer import Heads, TransformerMemory
from amago.nets.normalize import RunningNormalizer
from amago.types import Batch

Tensors = dict[str, Tensor]


class AgentStep(nn.Module):
    """Rows and the memory before → the policy, its greedy action, and the memory after.

    Weights are those of the agent, with everything that derives from them computed once.
    """

    def __init__(self, agent: Agent, index: int) -> None:
        super().__init__()
        self.encoder, self.actor = copy.deepcopy(agent.encoder), copy.deepcopy(agent.actor)
        self.memory = _functional_memory(copy.deepcopy(agent.memory))
        self.index = index
        _fix(self)
        self.eval()

    def forward(self, rows: Tensors, memory: Tensors) -> Tensors:
        obs = {key[4:]: value for key, value in rows.items() if key.startswith("obs/")}
        fields: dict[str, Any] = {k: v for k, v in rows.items() if not k.startswith("obs/")}
        batch = Batch(obs, **fields, terminal=torch.zeros_like(fields["first"]), lengths=())
        state, after = self.memory(self.encoder(batch), batch.time, memory)
        policy = self.actor.at_discount(state, self.index, action_mask(obs))
        if isinstance(policy, TanhGaussian):
            told = {"mean": policy.mean, "std": policy.log_std.exp()}
        else:
            told = {"probabilities": policy.probs}  # type: ignore[attr-defined]
        return {**told, "action": policy.mode(), **after}


def _functional_memory(memory: Memory) -> _FunctionalMemory:
    """A memory's step as a pure function."""
    for kind, function in _FUNCTIONS.items():
        if isinstance(memory, kind):
            found: _FunctionalMemory = function(memory)
            return found
    raise ValueError(
        f"only amago's own memories can be exported ({', '.join(k.__name__ for k in _FUNCTIONS)}), "
        f"got {type(memory).__name__}"
    )


class _FunctionalMemory(nn.Module):
    """`step` of a memory whose state is a dictionary of tensors; a row of `time` 0 forgets."""

    def initial(self, num_lanes: int) -> Tensors:
        """The state before the first row; its contents do not matter."""
        return {}

    def lane_axis(self, name: str) -> int:
        """The axis of a state tensor that counts lanes."""
        return 1


class _Feedforward(_FunctionalMemory):
    def __init__(self, memory: FeedforwardMemory) -> None:
        super().__init__()
        self.inner = memory

    def forward(self, x: Tensor, time: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        return self.inner.step(x, time, None)[0], {}


class _GRU(_FunctionalMemory):
    def __init__(self, memory: GRUMemory) -> None:
        super().__init__()
        self.inner = memory

    def initial(self, num_lanes: int) -> Tensors:
        return {"hidden": self.inner.initial_state(num_lanes)}

    def forward(self, x: Tensor, time: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        gru, hidden = self.inner.gru, state["hidden"] * (time != 0).to(x.dtype)[None, :, None]
        after = []
        for layer in range(gru.num_layers):
            weights = (getattr(gru, f"{name}_l{layer}") for name in _GRU_WEIGHTS)
            x = _gru_cell(x, hidden[layer], *weights)
            after.append(x)
        return self.inner.norm(self.inner.project(x)), {"hidden": torch.stack(after)}


_GRU_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _gru_cell(
    x: Tensor, hidden: Tensor, into: Tensor, over: Tensor, bias_in: Tensor, bias_over: Tensor
) -> Tensor:
    """One step of one layer, in torch's order of gates."""
    reset_in, update_in, new_in = nn.functional.linear(x, into, bias_in).chunk(3, -1)
    reset_over, update_over, new_over = nn.functional.linear(hidden, over, bias_over).chunk(3, -1)
    reset = torch.sigmoid(reset_in + reset_over)
    update = torch.sigmoid(update_in + update_over)
    new = torch.tanh(new_in + reset * new_over)
    return (1.0 - update) * new + update * hidden


class _Transformer(_FunctionalMemory):
    """Keys and values of the last `context_length` steps; step n sits in slot n mod that."""

    def __init__(self, memory: TransformerMemory) -> None:
        super().__init__()
        self.inner = memory

    def initial(self, num_lanes: int) -> Tensors:
        settings, weight = self.inner.settings, self.inner.embed.weight
        heads, width = settings.num_heads, settings.model_dim // settings.num_heads
        shape = (settings.num_layers, num_lanes, heads, self.inner.context_length, width)
        state = {"keys": weight.new_zeros(shape), "values": weight.new_zeros(shape)}
        if settings.previous_row:
            state["last_row"] = weight.new_zeros(num_lanes, weight.shape[1])
        return state

    def lane_axis(self, name: str) -> int:
        return 0 if name == "last_row" else 1

    def forward(self, x: Tensor, time: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        slots = torch.arange(self.inner.context_length, device=time.device)
        here = slots == (time % self.inner.context_length)[:, None]
        hidden = slots > time[:, None]
        after: Tensors = {}
        previous = None
        if "last_row" in state:
            previous, after["last_row"] = state["last_row"] * (time > 0)[:, None], x
        keys, values = list[Tensor](), list[Tensor]()

        def mix(query: Heads, key: Heads, value: Heads) -> Heads:
            layer = len(keys)
            keys.append(_written(state["keys"][layer], here, key))
            values.append(_written(state["values"][layer], here, value))
            scores = (query * query.shape[-1] ** -0.5)[:, :, None] @ keys[-1].mT
            scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
            mixed: Tensor = scores.softmax(-1) @ values[-1]
            return mixed[:, :, 0]

        x, rotation = self.inner.embed_rows(x, time, previous)
        for block in self.inner.blocks:
            x = block(x, rotation, mix)
        after = {"keys": torch.stack(keys), "values": torch.stack(values), **after}
        return self.inner.norm(x), after


def _written(old: Tensor, here: Tensor, new: Tensor) -> Tensor:
    """Keys or values [N, H, slots, dim] with this step's in its slot."""
    return torch.where(here[:, None, :, None], new[:, :, None], old)


_FUNCTIONS: dict[type[Memory], Any] = {
    FeedforwardMemory: _Feedforward,
    GRUMemory: _GRU,
    TransformerMemory: _Transformer,
}


class _FixedNormalizer(nn.Module):
    """A running normaliser that no longer runs."""

    mean: Tensor
    std: Tensor

    def __init__(self, running: RunningNormalizer) -> None:
        super().__init__()
        mean, std = running.statistics()
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", std.float())
        self.clip = running.clip

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) / self.std).clamp(-self.clip, self.clip)


@torch.no_grad()
def _fix(module: nn.Module) -> None:
    """Replace layers that compute their weights from others by plain ones, all the way down."""
    for name, child in module.named_children():
        if isinstance(child, SigmaLinear):
            size_out, size_in = child.weight.shape
            plain = nn.Linear(size_in, size_out, bias=child.bias is not None)
            plain.weight.copy_(child.eval().effective_weight())
            if child.bias is not None:
                plain.bias.copy_(child.bias)
            setattr(module, name, plain)
        elif isinstance(child, RunningNormalizer):
            setattr(module, name, _FixedNormalizer(child))
        else:
            _fix(child)
