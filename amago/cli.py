"""The command line: verbs, parsed by tyro."""

from __future__ import annotations

import ast
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from amago.config import Config, override
from amago.presets import PRESETS, find, preset

DEFAULT_PRESET = "dark-key-to-door"


@dataclass(frozen=True)
class TrainOptions:
    """Train an agent from a preset and show how it adapts."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    seed: int = 0
    """Seed of every random source of the run."""
    run_dir: Path | None = None
    """Folder of the run; unset: a new one in runs/."""
    epochs: int | None = None
    """Short for --run.epochs."""
    threads: int | None = None
    """Short for --run.threads."""


@dataclass(frozen=True)
class ResumeOptions:
    """Continue a run from its latest checkpoint, as if it had never stopped."""

    run: tyro.conf.Positional[Path]
    """The run folder."""


@dataclass(frozen=True)
class EvalOptions:
    """Play a trained agent on fresh worlds."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    episodes: int = 100
    """Rollouts to play."""
    greedy: bool = False
    """Take the most likely action; without this and --sampled, as in training."""
    sampled: bool = False
    """Sample the actions."""
    seed: int = 0
    """Seed of the worlds and of sampling."""
    which: str = "latest"
    """Checkpoint: latest, best, or an epoch."""
    json: bool = False
    """Print one JSON object instead of tables."""
    video: Path | None = None
    """Also write one rollout to this file (.mp4 or .gif)."""


@dataclass(frozen=True)
class PresetsOptions:
    """List the presets, or print all settings of one."""

    name: tyro.conf.Positional[str | None] = None
    """A preset."""


@dataclass(frozen=True)
class SweepOptions:
    """Run presets over seeds in a resumable queue, then compare them."""

    presets: tyro.conf.Positional[tuple[str, ...]]
    """The presets to run."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of every preset."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    root: Path = Path("runs/sweep")
    """Folder of the sweep; sweeps that share one are compared with each other."""
    export: Path | None = None
    """Also copy the evidence, without checkpoints and replay, to this folder."""


def train(arguments: Sequence[str]) -> int:
    name = DEFAULT_PRESET
    if arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
    options = _train_options(name, arguments)
    short = {"run.epochs": options.epochs, "run.threads": options.threads}
    config = override(options.config, {k: v for k, v in short.items() if v is not None})
    from amago import api
    from amago.training.view import make_view

    folder = options.run_dir or api.new_run_dir(name, options.seed)
    view = make_view(config.run.epochs)
    return _report(
        folder,
        lambda: api.train(config, options.seed, folder, preset=name, view=view),
    )


def _train_options(name: str, arguments: Sequence[str]) -> TrainOptions:
    """The preset with its overrides; `--env.kwargs.NAME VALUE` may name any argument."""
    config = preset(name)
    kwargs, rest = dict(config.env.kwargs), []
    remaining = iter(arguments)
    for argument in remaining:
        key, equals, value = argument.partition("=")
        if not key.startswith("--env.kwargs."):
            rest.append(argument)
            continue
        value = value if equals else next(remaining, "")
        kwargs[key.removeprefix("--env.kwargs.").replace("-", "_")] = _literal(value)
    config = override(config, {"env.kwargs": kwargs})
    options: TrainOptions = _parse(TrainOptions, rest, f"amago train {name}", TrainOptions(config))
    return options


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def resume(arguments: Sequence[str]) -> int:
    options = _parse(ResumeOptions, arguments, "amago resume")
    from amago import api
    from amago.config import from_dict
    from amago.training.run import read_header
    from amago.training.view import make_view

    epochs = from_dict(read_header(options.run)["config"]).run.epochs
    return _report(options.run, lambda: api.resume(options.run, view=make_view(epochs)))


def evaluate(arguments: Sequence[str]) -> int:
    options = _parse(EvalOptions, arguments, "amago eval")
    from amago import api
    from amago.config import from_dict
    from amago.training.run import read_header
    from amago.training.seeding import derive
    from amago.training.video import check_video, record_video

    if options.greedy and options.sampled:
        raise ValueError("--greedy and --sampled exclude each other; give at most one")
    if options.video is not None:
        check_video(options.video)
    policy = api.load(
        options.run,
        which=options.which,
        greedy=options.greedy if options.greedy or options.sampled else None,
        seed=derive(options.seed, "acting"),
    )
    settings = from_dict(read_header(options.run)["config"]).env
    seed = derive(options.seed, "eval envs")
    result = api.evaluate(policy, settings, options.episodes, seed=seed, num_lanes=32)
    if options.video is not None:
        record_video(policy.policy, settings, seed, options.video)
    if options.json:
        print(json.dumps(result))
        return 0
    from amago.envs.references import oracle_blocks

    _print_evaluation(result, oracle_blocks(settings))
    if options.video is not None:
        print(f"video: {options.video}")
    return 0


def presets(arguments: Sequence[str]) -> int:
    options = _parse(PresetsOptions, arguments, "amago presets")
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if options.name is None:
        table = Table("preset", "what it trains")
        for name, item in PRESETS.items():
            table.add_row(name, item.summary)
        console.print(table)
        return 0
    item = find(options.name)
    console.print(f"[bold]{options.name}[/]: {item.summary}", highlight=False)
    for path, value in _flat(dataclasses.asdict(item.make())):
        console.print(f"  {path} = {value!r}", highlight=False, markup=False, soft_wrap=True)
    return 0


def sweep(arguments: Sequence[str]) -> int:
    options = _parse(SweepOptions, _gathered("--set", arguments), "amago sweep")
    from amago.report.sweeps import export, summarise
    from amago.scale.jobs import flags, parse_overrides
    from amago.scale.sweep import plan, record_command, run_jobs

    for name in options.presets:  # a bad setting should fail here, not once per run
        _train_options(name, flags(parse_overrides(options.set)))
    jobs = plan(options.presets, options.seeds, options.set, options.root)
    record_command(options.root, ["amago", "sweep", *arguments])
    outcome = run_jobs(jobs, options.jobs, options.root)
    if outcome.exit_code == 0 or outcome.done:
        summarise(options.root)
        if options.export is not None:
            export(options.root, options.export)
    return int(outcome.exit_code)


def _gathered(flag: str, arguments: Sequence[str]) -> list[str]:
    """Several uses of a flag with many values as one, because tyro keeps only the last."""
    values: list[str] = []
    rest: list[str] = []
    gathering = False
    for argument in arguments:
        if argument == flag:
            gathering = True
        elif argument.startswith("--"):
            gathering = False
            rest.append(argument)
        else:
            (values if gathering else rest).append(argument)
    return [*rest, flag, *values] if values or flag in arguments else rest


VERBS: dict[str, tuple[Callable[[Sequence[str]], int], type]] = {
    "train": (train, TrainOptions),
    "resume": (resume, ResumeOptions),
    "eval": (evaluate, EvalOptions),
    "presets": (presets, PresetsOptions),
    "sweep": (sweep, SweepOptions),
}


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        sys.exit(0)
    if arguments[0] == "--version":
        import amago

        print(amago.__version__)
        sys.exit(0)
    verb = VERBS.get(arguments[0])
    if verb is None:
        _fail(f"no verb is called {arguments[0]!r}; there are {', '.join(VERBS)}")
    assert verb is not None
    try:
        sys.exit(verb[0](arguments[1:]))
    except (ValueError, RuntimeError, FileNotFoundError) as error:
        _fail(str(error))


def _parse(cls: Any, arguments: Sequence[str], prog: str, default: Any = None) -> Any:
    keywords = {} if default is None else {"default": default}
    return tyro.cli(
        cls,
        args=list(arguments),
        prog=prog,
        config=(tyro.conf.FlagConversionOff,) if cls is TrainOptions else (),
        **keywords,
    )


def _report(folder: Path, work: Callable[[], dict[str, Any]]) -> int:
    """Run to the end and show what came of it; say how to go on when interrupted."""
    try:
        result = work()
    except KeyboardInterrupt:
        print(f"\nstopped; go on with: amago resume {folder}", file=sys.stderr)
        return 130
    _print_evaluation(result, result["references"].get("oracle"))
    print(f"curves: {folder / 'curves.png'}")
    return 0


def _print_evaluation(result: dict[str, Any], oracle: list[float] | None) -> None:
    from rich.console import Console

    from amago.report.tables import adaptation_bars, evaluation_table

    console = Console()
    console.print(evaluation_table(result))
    if result.get("return_per_block") is not None:
        console.print(adaptation_bars(result["return_per_block"], oracle))


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in tree.items():
        nested = isinstance(value, dict) and name != "kwargs"
        rows += _flat(value, f"{prefix}{name}.") if nested else [(prefix + name, value)]
    return rows


def _help() -> str:
    lines = ["usage: amago VERB [options]", "", "verbs:"]
    lines += [f"  {name:<9} {cls.__doc__}" for name, (_, cls) in VERBS.items()]
    lines += ["", "`amago VERB --help` lists the options of a verb; `amago train PRESET --help`"]
    lines += ["shows every setting with the preset's value. Presets: " + ", ".join(PRESETS)]
    return "\n".join(lines)


def _fail(message: str) -> None:
    print(f"amago: {message}", file=sys.stderr)
    sys.exit(2)
