"""`amago train` and `amago resume`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from amago.cli.evaluations import run_to_the_end
from amago.cli.parsing import gathered, parse, switched, values_of
from amago.config import Config, literal, override
from amago.envs.catalogue import preset
from amago.presets.ablations import ablate

_DEFAULT_PRESET = "dark-key-to-door"


@dataclass(frozen=True)
class TrainOptions:
    """Train an agent from a preset and show how it adapts."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    seed: int = 0
    """Seed of every random source of the run."""
    run_dir: Path | None = None
    """Folder of the run; unset: a new one in runs/."""
    exist: Literal["error", "resume", "overwrite"] = "error"
    """What to do where --run-dir already has a run: refuse, continue it, or replace it."""
    check: bool = True
    """Check an environment that is not amago's own before training, for at most ten seconds;
    --no-check leaves it out."""
    epochs: int | None = None
    """Short for --run.epochs."""
    threads: int | None = None
    """Short for --run.threads."""
    size: str | None = None
    """Widths of all networks: tiny, small, medium, or paper (the domain's column of Table 3).
    Flags for single widths override it."""
    control: bool = False
    """Short for --run.control."""
    ablate: tuple[str, ...] = ()
    """Ablations of the paper; explicit flags override them. `amago presets --ablations` lists
    them."""


@dataclass(frozen=True)
class ResumeOptions:
    """Continue a run from its latest checkpoint, as if it had never stopped."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    from_: Annotated[int | None, tyro.conf.arg(name="from")] = None
    """Epoch of an earlier checkpoint to go on from; 0 begins again. What came later is dropped."""
    epochs: str | None = None
    """Epochs to train in all, 200, or more than planned so far, +50; unset: as many as before."""
    set: tuple[str, ...] = ()
    """Other settings from here on, as key=value; config.json keeps the list of changes. Settings
    of --scale may be given as for `amago train`: --scale.collectors 4."""
    env: str | None = None
    """The environment as module:Class, for a run made from Python with a class of its own."""
    trust: bool = False
    """Import the module of the run's environment and log to its W&B project: the run is yours."""


def train(arguments: Sequence[str]) -> int:
    name = _DEFAULT_PRESET
    if arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
    options = train_options(name, arguments)
    short = {
        "run.epochs": options.epochs,
        "run.threads": options.threads,
        "run.control": options.control or None,
    }
    config = override(options.config, {k: v for k, v in short.items() if v is not None})
    from amago import api
    from amago.arguments import new_run_dir, run_name
    from amago.training.view import make_view

    folder = options.run_dir or new_run_dir(run_name(config, name), options.seed)
    view = make_view(config.run.epochs)

    return run_to_the_end(
        folder,
        lambda: api.train(
            config,
            options.seed,
            folder,
            preset=name,
            view=view,
            exist=options.exist,
            check=options.check,
        ),
    )


def train_options(name: str, arguments: Sequence[str]) -> TrainOptions:
    """The preset with its ablations, then its overrides; `--env.kwargs.NAME VALUE` may name any
    argument."""
    config, rest = chosen_config(name, arguments)
    options: TrainOptions = parse(TrainOptions, rest, f"amago train {name}", TrainOptions(config))
    return options


def chosen_config(
    name: str, arguments: Sequence[str], changes: Mapping[str, Any] | None = None
) -> tuple[Config, list[str]]:
    """A preset in its size, with changes, ablations and arguments of the environment; and the
    arguments that are left to parse."""
    size = values_of("--size", arguments)[-1:]
    config = override(preset(name, *size), changes or {})
    config = ablate(config, values_of("--ablate", arguments))
    kwargs: dict[str, Any] = {}
    rest = []
    remaining = iter(switched(arguments, "control", "check"))
    for argument in remaining:
        key, equals, value = argument.partition("=")
        if not key.startswith("--env.kwargs."):
            rest.append(argument)
            continue
        value = value if equals else next(remaining, "")
        kwargs[key.removeprefix("--")] = literal(value)
    return override(config, kwargs), rest


def resume(arguments: Sequence[str]) -> int:
    arguments = gathered("--set", _scale_as_set(arguments))
    options = parse(ResumeOptions, arguments, "amago resume")
    from amago import api
    from amago.saved.files import count_rows
    from amago.saved.header import read_config
    from amago.sweep.jobs import parse_overrides
    from amago.training.changes import changed
    from amago.training.view import make_view

    changes = {key: literal(value) for key, value in parse_overrides(options.set).items()}
    config = changed(options.run, read_config(options.run), changes, options.epochs)
    logged = count_rows(options.run / "metrics.jsonl")
    done = logged if options.from_ is None else options.from_
    view = make_view(config.run.epochs, min(done, config.run.epochs))
    return run_to_the_end(
        options.run,
        lambda: api.resume(
            options.run,
            view=view,
            epoch=options.from_,
            epochs=options.epochs,
            set=changes,
            env=options.env,
            trust=options.trust,
        ),
    )


def _scale_as_set(arguments: Sequence[str]) -> list[str]:
    """--scale.NAME VALUE is short for --set scale.NAME=VALUE."""
    found: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        key, equals, value = argument.partition("=")
        if key.startswith("--scale."):
            value = value if equals else next(remaining, "")
            found += ["--set", f"{key.removeprefix('--')}={value}"]
        else:
            found.append(argument)
    return found
