"""amago from Python: train, resume, load, evaluate."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import gymnasium as gym

from amago.agent.agent import Parts
from amago.agent.device import resolve_device
from amago.agent.policy import AgentPolicy
from amago.agent.terms import Term
from amago.arguments import new_run_dir, resolve, run_name
from amago.check.before import check_before_training, is_foreign
from amago.config import Config, from_dict, override
from amago.envs.foreign import what_it_is
from amago.envs.in_process import Env, InProcessVector
from amago.envs.registry import MakeEnv, named_env, single_env
from amago.envs.settings import EnvSettings
from amago.envs.vector_maker import VectorMaker, as_maker
from amago.evaluation.evaluate import evaluate as evaluate_policy
from amago.evaluation.evaluate import evaluate_agent
from amago.evaluation.play import PlaySettings, check_fits, make_policy
from amago.handle import Run
from amago.nets.memory.interface import Memory
from amago.nets.timestep import TimestepEncoder
from amago.report.curves import plot_run
from amago.report.evaluations import verdict
from amago.report.page import REPORT
from amago.report.runs import read_run
from amago.reporting import write_report
from amago.saved.header import check_custom, read_config, read_header
from amago.saved.source import find_source
from amago.saved.trust import check_env as check_trusted
from amago.scale.collect import start_collection
from amago.scale.learn import check_control, follow_to_the_end, is_follower, start_learners
from amago.serving.predictor import Predictor
from amago.stopping import stoppable
from amago.training import loop
from amago.training.control import train_control
from amago.training.evaluation import final_test, final_test_settings
from amago.training.hooks import Hooks, OnEpoch, StopWhen
from amago.training.interrupt import saving
from amago.training.run import Custom, TrainingRun
from amago.training.start import create, is_run, restore, take_up
from amago.training.trackers.tracker import Pictures
from amago.training.view import Silent, View, make_view, view_like
from amago.types import EnvSpec, VectorEnv

_LOG = logging.getLogger("amago")
AnyEnv = MakeEnv | str | gym.vector.VectorEnv[Any, Any, Any]
"""An id, a class or function that makes an environment, or a vector environment."""
MakeEncoder = Callable[[EnvSpec], TimestepEncoder]
MakeMemory = Callable[..., Memory]
Exist = Literal["error", "resume", "overwrite"]
"""What to do with a folder that already has a run."""


def train(
    config: Config | str,
    seed: int = 0,
    run_dir: str | Path | None = None,
    *,
    env: AnyEnv | None = None,
    encoder: MakeEncoder | None = None,
    memory: MakeMemory | str | None = None,
    terms: Sequence[Term] = (),
    set: Mapping[str, Any] | None = None,
    preset: str = "",
    on_epoch: OnEpoch | None = None,
    on_evaluation: OnEpoch | None = None,
    stop_when: StopWhen | None = None,
    progress: bool = True,
    view: View | None = None,
    exist: Exist = "error",
    check: bool = True,
    **settings: Any,
) -> Run:
    """Train an agent; everything about it is in the run folder, which the returned Run reads.

    `config` is the name of a preset or a Config. Settings are replaced by keyword, epochs=20, or
    by their dotted names, set={"optim.learning_rate": 1e-4}. `env` is an id, a class or a function
    that makes an environment, or a Gymnasium vector environment; one that is not amago's own is
    first checked for at most ten seconds, unless `check` is off. `terms` are added to the built-in
    loss terms. `exist` says what to do with a `run_dir` that already has a run: refuse it, continue
    it with these settings, or replace it. Under torchrun only the first rank returns its Run.

    `on_epoch` and `on_evaluation` are called with an `Epoch` after every epoch and after every
    evaluation. The run ends early, with its final test, once `stop_when` says True. `progress`
    shows the run in a terminal or a notebook; `view` shows it in a way of your own.
    """
    if exist not in get_args(Exist):
        raise ValueError(f"exist takes {', '.join(get_args(Exist))}, got {exist!r}")
    hooks = Hooks(on_epoch, on_evaluation, stop_when)
    preset = config if isinstance(config, str) else preset
    if isinstance(env, str):
        settings, env = {"id": env, **settings}, None
    if isinstance(memory, str):
        settings, memory = {"memory": memory, **settings}, None
    config = resolve(config, set, settings)
    check_control(config)
    make_env: MakeEnv | None = as_maker(env)
    if isinstance(make_env, VectorMaker):
        config = override(config, make_env.settings())
    elif check:
        _check_foreign(config, make_env, seed)
    custom = Custom(Parts(encoder, memory, tuple(terms)), make_env)
    folder = Path(run_dir or new_run_dir(run_name(config, preset, make_env), seed))
    if is_follower():
        follow_to_the_end()
        return Run(folder)
    with stoppable():
        if exist == "resume" and is_run(folder):
            run = take_up(folder, config, seed, custom=custom)
        else:
            overwrite = exist == "overwrite"
            run = create(folder, config, seed, preset=preset, custom=custom, overwrite=overwrite)
        _finish(run, view, hooks, progress)
    return Run(folder, env=make_env, encoder=encoder, memory=memory, terms=terms)


def _check_foreign(config: Config, make_env: MakeEnv | None, seed: int) -> None:
    """Look at an environment that is not amago's own before training in it."""
    if make_env is not None or is_foreign(config.env):
        with stoppable():
            maker = partial(single_env, config.env, make_env)
            check_before_training(maker, seed, config.env.timeout_seconds)


def resume(
    run_dir: str | Path,
    *,
    env: AnyEnv | None = None,
    encoder: MakeEncoder | None = None,
    memory: MakeMemory | None = None,
    terms: Sequence[Term] = (),
    epoch: int | None = None,
    epochs: int | str | None = None,
    set: Mapping[str, Any] | None = None,
    trust: bool = False,
    on_epoch: OnEpoch | None = None,
    on_evaluation: OnEpoch | None = None,
    stop_when: StopWhen | None = None,
    progress: bool = True,
    view: View | None = None,
) -> Run:
    """Continue a run from its latest checkpoint as if it had never stopped.

    `epoch` chooses an earlier checkpoint (0: the beginning); what came later is dropped.
    `epochs` is a new number of epochs to train in all, or "+50" more; `set` are other settings,
    such as {"optim.learning_rate": 1e-4}. `trust` vouches for what the folder names, such as the
    module of its environment. Callbacks and `progress` are those of `train`.
    """
    if is_follower():
        follow_to_the_end()
        return Run(run_dir)
    hooks = Hooks(on_epoch, on_evaluation, stop_when)
    stored = read_config(Path(run_dir))
    check_control(override(stored, set or {}))
    env = named_again(env, stored)
    custom = Custom(Parts(encoder, memory, tuple(terms)), env)
    with stoppable():
        run = restore(
            Path(run_dir), custom=custom, epoch=epoch, epochs=epochs, changes=set, trust=trust
        )
        _finish(run, view, hooks, progress)
    return Run(run_dir, env=env, encoder=encoder, memory=memory, terms=terms, trust=trust)


def load(
    run_dir: str | Path,
    *,
    which: str = "latest",
    greedy: bool | None = None,
    seed: int = 0,
    env: AnyEnv | None = None,
    encoder: MakeEncoder | None = None,
    memory: MakeMemory | None = None,
    terms: Sequence[Term] = (),
    trust: bool = False,
    device: str = "auto",
) -> Predictor:
    """The trained policy of a run, of a packed agent's file or of "zoo:NAME"; `which` of a run's
    checkpoints: latest, best or an epoch. `trust` vouches for the module of its environment;
    `device` is where it acts, as --run.device."""
    source = find_source(run_dir, which)
    env = named_again(env, source.config)
    custom = Custom(Parts(encoder, memory, tuple(terms)), env)
    check_custom(source.name, source.header, custom.names())
    config = source.config
    check_trusted(source.name, config.env, trust=trust, named=env is not None)
    with contextlib.closing(single_env(config.env, env)) as example:
        spaces = example.observation_space, example.action_space
    agent = source.build(env, custom.parts)
    agent.to(resolve_device(override(config, {"run.device": device}), agent.spec))
    chosen = config.agent.greedy if greedy is None else greedy
    return Predictor(AgentPolicy(agent, seed=seed, greedy=chosen), *spaces)


def evaluate(
    policy: Predictor,
    env: str | EnvSettings | AnyEnv | Env | VectorEnv,
    episodes: int = 100,
    *,
    seed: int = 0,
    num_lanes: int = 16,
    greedy: bool | None = None,
    discount: float | None = None,
    instruction: str | None = None,
) -> dict[str, Any]:
    """Play a loaded policy: return, success and length, per tenth of the horizon and per task.

    `seed` decides worlds and sampled actions, the same as `amago eval --seed`. The oracle of the
    same worlds is in `references`, where it is known. `greedy` is the policy's own choice unless
    given.
    """
    agent, as_loaded = policy.policy.agent, policy.policy.greedy
    settings = PlaySettings.of_seed(
        seed,
        episodes=episodes,
        num_lanes=num_lanes,
        greedy=as_loaded if greedy is None else greedy,
        discount=discount,
        instruction=instruction,
    )
    if isinstance(env, str | EnvSettings):
        env = EnvSettings(id=env) if isinstance(env, str) else env
        return evaluate_agent(agent, env, settings)
    given: Any = as_maker(env)
    if not isinstance(given, gym.Env) and callable(given):
        return evaluate_agent(agent, EnvSettings(), settings, make_env=given)
    if instruction is not None:
        raise ValueError(
            f"instruction={instruction!r} needs lanes that evaluate makes itself; pass the id of "
            f"the environment or a function that makes one, not a {type(env).__name__}"
        )
    if not isinstance(given, gym.Env) and not hasattr(given, "num_lanes"):
        what, remedy = what_it_is(given)
        raise ValueError(f"expected an environment to evaluate on, got {what}; {remedy}")
    lanes = InProcessVector(lambda: given, 1, seed) if isinstance(given, gym.Env) else given
    check_fits(agent.spec, lanes.spec)
    return evaluate_policy(make_policy(agent, settings), lanes, episodes)


def named_again(env: AnyEnv | None, config: Config) -> MakeEnv | None:
    """What makes the environment of a stored run, if the user gives it once more."""
    made: MakeEnv | None = named_env(env, config.env) if isinstance(env, str) else as_maker(env)
    return made


def _finish(run: TrainingRun, view: View | None, hooks: Hooks, progress: bool) -> None:
    own_view = view is not None
    if view is None:
        view = make_view(run.config.run.epochs, run.epoch) if progress else Silent()
    with contextlib.closing(run):
        with saving(run), contextlib.closing(view):
            # Learners first: a run cannot begin without them, but with fewer collectors it can.
            run.feed = start_learners(run)
            run.collection = start_collection(run)
            view.begin(run.folder)
            loop.train(run, view, hooks)
            view.phase("final test")
            result = final_test(run)
        if run.config.run.control:
            run.end_play()  # its processes and their places are the control's now
            result = train_control(run, train, view_like(view, run.epoch))
        run.logger.end(result, _draw(run, result))
    if not own_view and (said := verdict(result)) is not None:
        _LOG.warning(said)


def _draw(run: TrainingRun, result: Mapping[str, Any]) -> Pictures:
    """curves.png and, if wanted, report.html of a run that is complete."""
    curves, film = run.folder / "curves.png", None
    plot_run(read_run(run.folder), curves, result["references"])
    if run.config.run.report:
        settings, make_env = final_test_settings(run.config, run.seed), run.custom.make_env
        policy = make_policy(run.agent.eval(), settings)
        film = write_report(run.folder, policy, run.config.env, settings, make_env=make_env).film
    drawn = curves.read_bytes() if curves.is_file() else b""
    return Pictures(drawn or None, film)


def report(run_dir: str | Path, *, which: str = "latest", trust: bool = False) -> Path:
    """Write report.html into a run's folder, and return its path."""
    header = read_header(Path(run_dir))
    config, policy, why_not = from_dict(header["config"]), None, ""
    settings = final_test_settings(config, header["seed"])
    try:
        policy = make_policy(load(run_dir, which=which, trust=trust).policy.agent.eval(), settings)
    except ValueError as error:  # classes that only their author has, no checkpoint yet
        why_not = f"Nothing was played: {error}"
    write_report(Path(run_dir), policy, config.env, settings, why_not=why_not)
    return Path(run_dir) / REPORT
