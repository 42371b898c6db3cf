"""The obvious implementation of amago's network and update: the yardstick of `amago bench`.

It computes what amago computes (tests/test_bench_plain.py holds the two together) for real-valued
observations and discrete actions, in the way one would write it down first:

- every row of the padded batch goes through every layer, and the losses mask the padding;
- attention fills an L×L matrix of scores and masks it;
- the critics are a Python list;
- acting keeps no cache: each step runs the whole history again.
"""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def mlp(*sizes):
    layers = [layer for i, o in pairwise(sizes) for layer in (nn.Linear(i, o), nn.LeakyReLU())]
    return nn.Sequential(*layers[:-1])


def positions(time, width):
    powers = torch.arange(width // 2, dtype=torch.float64) / (width // 2)
    angles = time.double()[..., None] / 10_000.0**powers
    return torch.cat((angles.sin(), angles.cos()), -1).float()


class SigmaLinear(nn.Module):
    def __init__(self, size_in, size_out, bias=True):
        super().__init__()
        self.weight = nn.Parameter(nn.init.trunc_normal_(torch.empty(size_out, size_in), std=0.02))
        self.bias = nn.Parameter(torch.zeros(size_out)) if bias else None
        self.gain = nn.Parameter(torch.ones(()))
        left, _, right = torch.linalg.svd(self.weight.detach(), full_matrices=False)
        self.register_buffer("u", left[:, 0].clone())
        self.register_buffer("v", right[0].clone())

    @torch.no_grad()
    def power_iterate(self):
        self.v.copy_(F.normalize(self.weight.T @ self.u, dim=0))
        self.u.copy_(F.normalize(self.weight @ self.v, dim=0))

    def forward(self, x):
        sigma = self.u @ (self.weight @ self.v)
        return F.linear(x, self.gain / sigma * self.weight, self.bias)


class Block(nn.Module):
    def __init__(self, settings):
        super().__init__()
        width, hidden = settings.model_dim, settings.feedforward_dim
        self.num_heads = settings.num_heads
        self.norm_attention, self.norm_mixed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = SigmaLinear(width, 3 * width, bias=False), SigmaLinear(width, width)
        self.head_scale = nn.Parameter(torch.ones(settings.num_heads, 1))
        self.norm_feedforward, self.norm_hidden = nn.LayerNorm(width), nn.LayerNorm(hidden)
        self.widen, self.narrow = SigmaLinear(width, hidden), SigmaLinear(hidden, width)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, x, allowed):
        batch, rows, width = x.shape
        heads = self.qkv(self.norm_attention(x)).view(batch, rows, 3, self.num_heads, -1)
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(2))
        scores = query @ key.transpose(-1, -2) / math.sqrt(width / self.num_heads)
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)  # [B, H, L, L]
        mixed = (weights @ value).transpose(1, 2) * self.head_scale
        x = x + self.norm_mixed(self.out(mixed.reshape(batch, rows, width)))
        hidden = self.norm_hidden(F.leaky_relu(self.widen(self.norm_feedforward(x))))
        return x + self.dropout(self.narrow(hidden))


class Statistics(nn.Module):
    """Bias-corrected running mean and deviation."""

    def __init__(self, size, rate, min_variance):
        super().__init__()
        self.rate, self.min_variance = rate, min_variance
        for name, shape in (("mean", size), ("second", size), ("mass", ())):
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))

    @torch.no_grad()
    def update(self, x):
        self.mean.lerp_(x.double().mean(0), self.rate)
        self.second.lerp_(x.double().square().mean(0), self.rate)
        self.mass.lerp_(torch.ones((), dtype=torch.float64), self.rate)

    def read(self):
        if self.mass == 0:
            return torch.zeros(len(self.mean)), torch.ones(len(self.mean))
        mean = self.mean / self.mass
        variance = self.second / self.mass - mean.square()
        return mean.float(), variance.clamp(min=self.min_variance).sqrt().float()


class PlainAgent(nn.Module):
    def __init__(self, spec, config):
        super().__init__()
        kinds = {item.kind for item in spec.obs.values()}
        if spec.action.kind != "discrete" or kinds != {"real"} or config.memory != "transformer":
            raise ValueError(
                "the plain implementation expects discrete actions, real-valued observations and "
                f"the transformer, got {spec.action.kind} actions, {sorted(kinds)} observations "
                f"and {config.memory}"
            )
        self.spec, self.config = spec, config
        discounts = config.agent.resolve_discounts("discrete")
        self.acting_index = discounts.index(config.agent.acting_discount)
        self.register_buffer("discounts", torch.tensor(discounts))
        self.shape = (len(discounts), spec.action.size)
        outputs = math.prod(self.shape)
        width, heads = config.transformer.model_dim, config.heads
        num_real = sum(math.prod(item.shape) for item in spec.obs.values()) + 1
        size_in = num_real + spec.action.size + 1 + (spec.horizon is not None)
        self.normalizer = Statistics(num_real, 1e-4, 1e-4)
        self.encoder = mlp(size_in, *config.encoder.hidden)
        self.encoder_norm = nn.LayerNorm(config.encoder.hidden[-1])
        self.embed = nn.Linear(config.encoder.hidden[-1], width)
        self.dropout = nn.Dropout(config.transformer.dropout)
        self.blocks = nn.ModuleList(
            Block(config.transformer) for _ in range(config.transformer.num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.actor = mlp(width, *heads.actor_hidden, outputs)
        self.critics = nn.ModuleList(
            mlp(width, *heads.critic_hidden, outputs) for _ in range(heads.num_critics)
        )
        self.popart = Statistics(len(discounts), heads.popart_rate, 1e-4)
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)

    def reals(self, rows):
        """Observation and reward of rows with any leading dimensions."""
        start = rows.prev_reward.dim()
        obs = [rows.obs[key].flatten(start) for key in sorted(rows.obs)]
        return torch.cat([*obs, rows.prev_reward[..., None]], -1)

    def states(self, rows, allowed):
        reals = self.reals(rows)
        if self.config.encoder.normalize:
            mean, std = self.normalizer.read()
            reals = ((reals - mean) / std).clamp(-10.0, 10.0)
        features = [reals, rows.prev_action, rows.first.float()[..., None]]
        if self.spec.horizon is not None:
            features.append((rows.time / self.spec.horizon)[..., None])
        x = self.embed(self.encoder_norm(self.encoder(torch.cat(features, -1))))
        x = self.dropout(x + positions(rows.time, x.shape[-1]))
        for block in self.blocks:
            x = block(x, allowed)
        return self.norm(x)

    def probabilities(self, actor, states):
        soft = actor(states).unflatten(-1, self.shape).softmax(-1)
        floor = min(self.config.heads.probability_floor, 0.1 / self.shape[1])
        return (1.0 - self.shape[1] * floor) * soft + floor


class PlainLearner:
    def __init__(self, agent):
        self.agent, self.updates = agent, 0
        self.parameters = [p for p in agent.parameters() if p.requires_grad]
        optim = agent.config.optim
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=optim.learning_rate, weight_decay=optim.weight_decay
        )

    def step(self, batch):
        agent, optim = self.agent.train(), self.agent.config.optim
        for layer in agent.modules():
            if isinstance(layer, SigmaLinear):
                layer.power_iterate()
        agent.normalizer.update(agent.reals(batch)[batch.valid])
        losses = self.losses(batch)
        self.optimizer.zero_grad()
        losses["loss/total"].backward()
        losses["grad/norm"] = nn.utils.clip_grad_norm_(self.parameters, optim.grad_clip)
        self.updates += 1
        for group in self.optimizer.param_groups:
            warm = min(1.0, self.updates / max(1, optim.warmup_updates))
            group["lr"] = optim.learning_rate * warm
        self.optimizer.step()
        with torch.no_grad():
            pairs = ((agent.target_actor, agent.actor), (agent.target_critics, agent.critics))
            for target, online in pairs:
                for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                    slow.lerp_(fast, agent.config.agent.target_tau)
        return {name: value.detach() for name, value in losses.items()}

    def losses(self, batch):
        agent, settings = self.agent, self.agent.config.agent
        rows = batch.valid.shape[1]
        states = agent.states(batch, torch.ones(rows, rows, dtype=torch.bool).tril())
        state, following = states[:, :-1], states[:, 1:].detach()
        keep = batch.valid[:, 1:]
        action = batch.prev_action[:, 1:, None]  # [B, L, 1, A]
        target = self.target(batch, following)
        self.rescale(target[keep])
        mean, std = agent.popart.read()

        probs = agent.probabilities(agent.actor, state)  # [B, L, G, A]
        values = torch.stack([critic(state).unflatten(-1, agent.shape) for critic in agent.critics])
        taken = (values * action).sum(-1)  # [C, B, L, G]
        expected = (values.detach() * probs).sum(-1)
        weight = (taken.mean(0) > expected.mean(0)).float().detach()
        terms = {
            "loss/critic": (taken - (target - mean) / std).square().mean(0),
            "loss/actor": -expected.amin(0),
            "loss/bc": -weight * (probs.log() * action).sum(-1),
        }
        means = {name: term[keep].mean() for name, term in terms.items()}
        total = settings.critic_weight * means["loss/critic"]
        total = total + settings.actor_weight * means["loss/actor"]
        return {**means, "loss/total": total + settings.bc_weight * means["loss/bc"]}

    @torch.no_grad()
    def target(self, batch, states):
        agent, settings = self.agent, self.agent.config.agent
        mean, std = agent.popart.read()
        probs = agent.probabilities(agent.target_actor, states)
        values = []
        for index in torch.randperm(len(agent.target_critics))[: settings.target_critics]:
            table = agent.target_critics[index](states).unflatten(-1, agent.shape)
            values.append((table * probs).sum(-1) * std + mean)
        alive = (~batch.terminal[:, 1:]).float()[..., None]
        reward = settings.reward_scale * batch.prev_reward[:, 1:, None]
        return reward + agent.discounts * alive * torch.stack(values).amin(0)

    @torch.no_grad()
    def rescale(self, target):
        """Move PopArt's statistics and keep every value where it was."""
        agent = self.agent
        first = agent.popart.mass == 0
        old_mean, old_std = agent.popart.read()
        agent.popart.update(target)
        if first:
            return
        mean, std = agent.popart.read()
        scale = (old_std / std).repeat_interleave(agent.shape[1])
        shift = ((old_mean - mean) / std).repeat_interleave(agent.shape[1])
        for critic in (*agent.critics, *agent.target_critics):
            critic[-1].weight.mul_(scale[:, None])
            critic[-1].bias.mul_(scale).add_(shift)


class PlainPolicy:
    """Implements amago.types.Policy; the memory is the list of all timesteps so far."""

    def __init__(self, agent, greedy=False):
        self.agent, self.greedy = agent.eval(), greedy

    def initial_state(self, num_lanes):
        return []

    @torch.no_grad()
    def act(self, timestep, state):
        agent = self.agent
        state = [*state, timestep][-(int(timestep.time.max()) + 1) :]
        rows = History(state)
        step = torch.arange(len(state))
        begin = (len(state) - 1 - rows.time[:, -1])[:, None, None]  # where the rollout began
        earlier = (step <= step[:, None]) & (step >= begin)
        allowed = earlier | torch.eye(len(state), dtype=torch.bool)
        states = agent.states(rows, allowed[:, None])[:, -1]
        probs = agent.probabilities(agent.actor, states)[:, agent.acting_index]
        chosen = probs.argmax(-1) if self.greedy else torch.multinomial(probs, 1)[:, 0]
        return chosen.numpy(), state


class History:
    """Timesteps as one padded batch [N, L]."""

    def __init__(self, timesteps):
        def stack(arrays):
            return torch.from_numpy(np.stack(arrays, 1))

        self.obs = {key: stack([t.obs[key] for t in timesteps]) for key in timesteps[0].obs}
        for name in ("prev_action", "prev_reward", "time", "first"):
            setattr(self, name, stack([getattr(t, name) for t in timesteps]))
