"""An agent from a configuration alone, without a run."""

from __future__ import annotations

import contextlib

import torch

from amago.agent.agent import Agent, Parts
from amago.config import Config
from amago.envs.registry import MakeEnv, env_spec


def make_agent(
    config: Config,
    *,
    make_env: MakeEnv | None = None,
    parts: Parts | None = None,
    empty: bool = False,
) -> Agent:
    """The untrained agent that a run of `config` begins with, but for the seed of its weights.

    `make_env` replaces the configuration's environment. An `empty` agent has shapes without
    memory, to count parameters or to compare a file with.
    """
    spec = env_spec(config.env, make_env)
    with torch.device("meta") if empty else contextlib.nullcontext():
        return Agent(spec, config, parts)
