"""amago from Python: train, resume, load, evaluate."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import gymnasium as gym

from amago.agent.agent import Parts
from amago.agent.policy import AgentPolicy
from amago.agent.terms import Term
from amago.check.check_env import Check, check
from amago.config import Config, from_dict
from amago.envs.in_process import Env, InProcessVector
from amago.envs.registry import MakeEnv, make_vector, single_env
from amago.envs.settings import EnvSettings
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.evaluation.evaluate import evaluate as evaluate_policy
from amago.evaluation.evaluate import evaluate_agent
from amago.evaluation.play import PlaySettings, check_fits, make_policy
from amago.nets.memory.interface import Memory
from amago.nets.timestep import TimestepEncoder
from amago.report.curves import plot_run
from amago.report.runs import read_run
from amago.reporting import write_report
from amago.scale.collect import start_collection
from amago.scale.learn import follow_to_the_end, is_follower, start_learners
from amago.serving.predictor import Predictor
from amago.training import loop
from amago.training.evaluation import final_test, final_test_settings
from amago.training.header import check_custom, read_header
from amago.training.interrupt import saving, stoppable
from amago.training.run import Custom, TrainingRun
from amago.training.source import find_source
from amago.training.start import create, is_run, restore, take_up
from amago.training.trust import check_env as check_trusted
from amago.training.view import Silent, View
from amago.types import EnvSpec, VectorEnv

MakeEncoder = Callable[[EnvSpec], TimestepEncoder]
MakeMemory = Callable[..., Memory]
Exist = Literal["error", "resume", "overwrite"]
"""What to do with a folder that already has a run."""


def train(
    config: Config,
    seed: int = 0,
    run_dir: str | Path | None = None,
    *,
    env: MakeEnv | None = None,
    encoder: MakeEncoder | None = None,
    memory: MakeMemory | None = None,
    terms: Sequence[Term] = (),
    preset: str = "",
    view: View | None = None,
    exist: Exist = "error",
) -> dict[str, Any]:
    """Train an agent and return its final evaluation; everything else is in the run folder.

    `terms` are added to the built-in loss terms. `exist` says what to do with a `run_dir` that
    already has a run: refuse it, continue it with these settings, or replace it. Under torchrun
    the first rank returns the evaluation and the others {}.
    """
    if exist not in get_args(Exist):
        raise ValueError(f"exist takes {', '.join(get_args(Exist))}, got {exist!r}")
    custom = Custom(Parts(encoder, memory, tuple(terms)), env)
    folder = Path(run_dir) if run_dir is not None else new_run_dir(preset or config.env.id, seed)
    if is_follower():
        return follow_to_the_end()
    with stoppable():
        if exist == "resume" and is_run(folder):
            return _finish(take_up(folder, config, seed, custom=custom), view)
        overwrite = exist == "overwrite"
        run = create(folder, config, seed, preset=preset, custom=custom, overwrite=overwrite)
        return _finish(run, view)


def resume(
    run_dir: str | Path,
    *,
    env: MakeEnv | None = None,
    encoder: MakeEncoder | None = None,
    memory: MakeMemory | None = None,
    terms: Sequence[Term] = (),
    view: View | None = None,
    epoch: int | None = None,
    epochs: int | str | None = None,
    changes: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """Continue a run from its latest checkpoint as if it had never stopped.

    `epoch` chooses an earlier checkpoint (0: the beginning); what came later is dropped.
    `epochs` is a new number of epochs to train in all, or "+50" more; `changes` are other
    settings, such as {"optim.learning_rate": 1e-4}. `trust` vouches for what the folder names,
    such as the module of its environment.
    """
    if is_follower():
        return follow_to_the_end()
    custom = Custom(Parts(encoder, memory, tuple(terms)), env)
    with stoppable():
        run = restore(
            Path(run_dir), custom=custom, epoch=epoch, epochs=epochs, changes=changes, trust=trust
        )
        return _finish(run, view)


def load(
    run_dir: str | Path,
    *,
    which: str = "latest",
    greedy: bool | None = None,
    seed: int = 0,
    env: MakeEnv | None = None,
    encoder: MakeEncoder | None = None,
    memory: MakeMemory | None = None,
    terms: Sequence[Term] = (),
    trust: bool = False,
) -> Predictor:
    """The trained policy of a run, of a packed agent's file or of "zoo:NAME"; `which` of a run's
    checkpoints: latest, best or an epoch. `trust` vouches for the module of its environment."""
    source = find_source(run_dir, which)
    custom = Custom(Parts(encoder, memory, tuple(terms)), env)
    check_custom(source.name, source.header, custom.names())
    config = source.config
    check_trusted(source.name, config, trust=trust or env is not None)
    with contextlib.closing(single_env(config.env, env)) as example:
        obs = ObsConverter(example.observation_space)
        action = ActionConverter(example.action_space)
    lanes = max(1, len(config.env.ids))
    vector = make_vector(config.env, seed=0, num_lanes=lanes, make_env=env)
    vector.close()
    agent = source.build(vector.spec, custom.parts)
    chosen = config.agent.greedy if greedy is None else greedy
    return Predictor(AgentPolicy(agent, seed=seed, greedy=chosen), obs, action)


def evaluate(
    policy: Predictor,
    env: str | EnvSettings | MakeEnv | Env | VectorEnv,
    episodes: int = 100,
    *,
    seed: int = 0,
    num_lanes: int = 16,
    greedy: bool | None = None,
    discount: float | None = None,
    instruction: str | None = None,
) -> dict[str, Any]:
    """Play a loaded policy: return, success and length, per tenth of the horizon and per task.

    `seed` decides worlds and sampled actions. The oracle of the same worlds is in `references`,
    where it is known. `greedy` is the policy's own choice unless given.
    """
    agent, as_loaded = policy.policy.agent, policy.policy.greedy
    settings = PlaySettings(
        episodes=episodes,
        num_lanes=num_lanes,
        world_seed=seed,
        action_seed=seed,
        greedy=as_loaded if greedy is None else greedy,
        discount=discount,
        instruction=instruction,
    )
    if isinstance(env, str | EnvSettings):
        env = EnvSettings(id=env) if isinstance(env, str) else env
        return evaluate_agent(agent, env, settings)
    if not isinstance(env, gym.Env) and callable(env):
        return evaluate_agent(agent, EnvSettings(), settings, make_env=env)
    if instruction is not None:
        raise ValueError(
            f"instruction={instruction!r} needs lanes that evaluate makes itself; pass the id of "
            f"the environment or a function that makes one, not a {type(env).__name__}"
        )
    lanes = InProcessVector(lambda: env, 1, seed) if isinstance(env, gym.Env) else env
    check_fits(agent.spec, lanes.spec)
    return evaluate_policy(make_policy(agent, settings), lanes, episodes)


def check_env(env: str | EnvSettings | MakeEnv | Env, steps: int = 1000, *, seed: int = 0) -> Check:
    """What amago sees of an environment, what training on it would cost, and every problem
    with its remedy; print it, or read `.problems`."""
    if isinstance(env, str):
        env = EnvSettings(id=env)
    if isinstance(env, EnvSettings):
        settings = env
        kwargs = "".join(f" --env.kwargs.{name} {value}" for name, value in env.kwargs.items())
        launch = f"amago train gym --env.id {env.id}{kwargs}"
        return check(lambda: single_env(settings), steps, seed, launch)
    if isinstance(env, gym.Env):
        kept = _KeptOpen(env)
        return check(lambda: kept, steps, seed)
    if not callable(env):
        raise ValueError(
            "expected the id of an environment, a gymnasium.Env or a function that makes one, got "
            f"{type(env).__name__}; of a vector environment, check a single lane"
        )
    return check(env, steps, seed)


class _KeptOpen(gym.Wrapper[Any, Any, Any, Any]):
    """A user's own environment, which is not ours to close."""

    def close(self) -> None: ...


def new_run_dir(name: str, seed: int) -> Path:
    """runs/<name>-<seed>-<time>, with a number behind it if a run of the same second has it."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{name.replace('/', '-')}-seed{seed}-{stamp}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], others) if not path.exists())


def _finish(run: TrainingRun, view: View | None) -> dict[str, Any]:
    view = view or Silent()
    with contextlib.closing(run), saving(run), contextlib.closing(view):
        run.collection = start_collection(run)
        run.feed = start_learners(run)
        view.begin(run.folder)
        loop.train(run, view)
        view.phase("final test")
        result = final_test(run)
    plot_run(read_run(run.folder), run.folder / "curves.png", result["references"])
    if run.config.run.report:
        settings = final_test_settings(run.config, run.seed)
        policy = make_policy(run.agent.eval(), settings)
        write_report(run.folder, policy, run.config.env, settings, make_env=run.custom.make_env)
    return result


def report(run_dir: str | Path, *, which: str = "latest", trust: bool = False) -> Path:
    """Write report.html into a run's folder, and return its path."""
    header = read_header(Path(run_dir))
    config, policy, why_not = from_dict(header["config"]), None, ""
    settings = final_test_settings(config, header["seed"])
    try:
        policy = make_policy(load(run_dir, which=which, trust=trust).policy.agent.eval(), settings)
    except ValueError as error:  # classes that only their author has, no checkpoint yet
        why_not = f"Nothing was played: {error}"
    return write_report(Path(run_dir), policy, config.env, settings, why_not=why_not)
