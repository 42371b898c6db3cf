"""`amago eval`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from amago.cli.evaluations import print_evaluation
from amago.cli.parsing import gathered, parse
from amago.config import Config, literal, override
from amago.envs.settings import EnvSettings

if TYPE_CHECKING:
    from amago.agent.agent import Agent
    from amago.agent.policy import AgentPolicy
    from amago.envs.registry import MakeEnv
    from amago.evaluation.play import PlaySettings
    from amago.types import Policy


@dataclass(frozen=True)
class EvalOptions:
    """Play a trained agent on fresh worlds."""

    run: tyro.conf.Positional[str]
    """A run folder, a packed agent, or zoo:NAME."""
    episodes: int = 100
    """Rollouts to play."""
    greedy: bool = False
    """Take the most likely action. Without --greedy and --sampled: as the run was trained."""
    sampled: bool = False
    """Sample the actions."""
    seed: int = 0
    """Seed of the worlds and of sampling."""
    which: str = "latest"
    """Checkpoint: latest, best, or an epoch."""
    threads: int = 1
    """Torch threads; a few lanes act fastest on one, also beside other work."""
    device: str = "auto"
    """Device that acts: auto (a GPU for wide networks, where there is one), cpu, cuda, cuda:1."""
    json: bool = False
    """Print one JSON object instead of tables."""
    set: tuple[str, ...] = ()
    """Settings of the environment changed for this evaluation: env.kwargs.split=test."""
    instruction: str | None = None
    """What to ask for in every world: "collect sapling, place plant x2, eat cow"."""
    env: str | None = None
    """The environment as module:Class, for a run made from Python with a class of its own."""
    trust: bool = False
    """Import the module of the run's environment: the run is yours."""
    table: Literal["crafter"] | None = None
    """Success per instruction of a published table, beside random play; --episodes of each."""
    video: Path | None = None
    """Also write one rollout to this file (.mp4 or .gif)."""
    video_worlds: int = 1
    """Rollouts side by side in the film, each in a world of its own."""
    video_ends: bool = False
    """Let the film show the first and the last quarter of a rollout beside each other."""
    video_fog: bool = True
    """Hide what the agent has not perceived yet, where the domain knows."""
    attention: Path | None = None
    """Also draw the Transformer's attention over one rollout to this file (.png)."""


def evaluate(arguments: Sequence[str]) -> int:
    options = parse(EvalOptions, gathered("--set", arguments), "amago eval")
    from amago import api
    from amago.evaluation.evaluate import evaluate_agent
    from amago.evaluation.film import FilmSettings, check_video
    from amago.process import prepare_process
    from amago.rollout.random_policy import RandomPolicy
    from amago.saved.source import find_source

    if options.greedy and options.sampled:
        raise ValueError("--greedy and --sampled exclude each other; give at most one")
    if options.table is not None and (options.instruction, options.video, options.attention) != (
        None, None, None,
    ):  # fmt: skip
        raise ValueError("--table plays alone; leave out --instruction, --video and --attention")
    if options.video is not None:
        check_video(options.video)
        FilmSettings(options.video_worlds)
    prepare_process(options.threads)
    greedy = options.greedy if options.greedy or options.sampled else None
    loaded = api.load(
        options.run,
        which=options.which,
        greedy=greedy,
        env=options.env,
        trust=options.trust,
        device=options.device,
    ).policy
    config = find_source(options.run, options.which).config
    agent, env = loaded.agent, _changed_env(config, options.set)
    make_env = api.named_again(options.env, config)
    settings = _play_settings(options, loaded.greedy)
    if loaded.greedy != agent.config.agent.greedy:
        meant = "--greedy" if agent.config.agent.greedy else "--sampled"
        print(f"this agent was trained to act {meant[2:]}; {meant} is its own way", file=sys.stderr)
    if options.table is not None:
        return _show_table(agent, env, settings, options)
    players = {
        "random": RandomPolicy(agent.spec, settings.action_seed),
        **_control(options, settings),
    }
    result = evaluate_agent(agent, env, settings, controls=players, make_env=make_env)
    result["greedy"] = settings.greedy
    if options.json:
        print(json.dumps(result))
    else:
        print_evaluation(result, env)
    _show_one_rollout(agent, env, settings, options, make_env)
    return 0


def _control(options: EvalOptions, settings: PlaySettings) -> dict[str, Policy]:
    """The agent without memory that was trained beside this one, if there is one."""
    from amago import api
    from amago.evaluation.play import make_policy
    from amago.saved.header import CONTROL, NO_MEMORY

    folder = Path(options.run) / CONTROL
    if not (folder / "result.json").is_file():
        return {}
    which = "best" if options.which == "best" else "latest"
    known = api.load(
        folder, which=which, env=options.env, trust=options.trust, device=options.device
    )
    return {NO_MEMORY: make_policy(known.policy.agent, settings)}


def _play_settings(options: EvalOptions, greedy: bool) -> PlaySettings:
    from amago.evaluation.play import PlaySettings

    return PlaySettings.of_seed(
        options.seed, episodes=options.episodes, greedy=greedy, instruction=options.instruction
    )


def _show_one_rollout(
    agent: Agent,
    env: EnvSettings,
    settings: PlaySettings,
    options: EvalOptions,
    make_env: MakeEnv | None,
) -> None:
    from amago.evaluation.film import FilmSettings, record_video
    from amago.evaluation.play import make_policy

    out = sys.stderr if options.json else sys.stdout
    if options.video is not None:
        film = FilmSettings(options.video_worlds, options.video_ends, options.video_fog)
        policy = make_policy(agent, settings)
        record_video(policy, env, settings, options.video, film, make_env=make_env)
        print(f"video: {options.video}", file=out)
    if options.attention is not None:
        _draw_attention(make_policy(agent, settings), env, settings, options.attention, make_env)
        print(f"attention: {options.attention}", file=out)


def _show_table(
    agent: Agent, env: EnvSettings, settings: PlaySettings, options: EvalOptions
) -> int:
    from rich.console import Console

    from amago.envs.domains.crafter.goals import TABLE_GOALS
    from amago.evaluation.instructions import success_per_instruction
    from amago.evaluation.play import make_policy
    from amago.report.tables import instruction_table

    if env.kwargs.get("instructions") == "none":
        # An agent that reads no instructions is tested with the same ones.
        env = replace(env, kwargs={**env.kwargs, "instructions": "random"})
    policy = make_policy(agent, settings)
    rows = success_per_instruction(policy, agent.spec, env, settings, TABLE_GOALS)
    if options.json:
        print(json.dumps(rows))
    else:
        Console().print(instruction_table(rows, options.episodes))
    return 0


def _draw_attention(
    policy: AgentPolicy,
    env: EnvSettings,
    settings: PlaySettings,
    path: Path,
    make_env: MakeEnv | None,
) -> None:
    from amago.evaluation.attention import diagnose_rollout, events
    from amago.report.attention import Attention, plot_attention

    rollout, layers = diagnose_rollout(policy, env, settings, make_env=make_env)
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = [layer.weights.cpu().numpy() for layer in layers]
    entropies = [layer.entropy.cpu().numpy() for layer in layers]
    plot_attention(Attention(weights, entropies, events(rollout)), path)


def _changed_env(config: Config, assignments: Sequence[str]) -> EnvSettings:
    """A run's environment with some of its settings replaced."""
    from amago.sweep.jobs import parse_overrides

    changes = parse_overrides(assignments)
    for key, value in changes.items():
        if not key.startswith("env."):
            raise ValueError(f"--set of an evaluation takes env.NAME=VALUE, got {key}={value}")
    return override(config, {key: literal(value) for key, value in changes.items()}).env
