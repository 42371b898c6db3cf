"""`amago train` and `amago resume`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from amago.cli.evaluations import run_to_the_end
from amago.cli.parsing import parse, values_of
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
    epochs: int | None = None
    """Short for --run.epochs."""
    threads: int | None = None
    """Short for --run.threads."""
    size: str | None = None
    """Widths of all networks: tiny, small, medium, or paper (the domain's column of Table 3).
    Flags for single widths override it."""
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
    epochs: int | None = None
    """Epochs to train in all; unset: as many as before."""
    trust: bool = False
    """Import the module of the run's environment and log to its W&B project: the run is yours."""


def train(arguments: Sequence[str]) -> int:
    name = _DEFAULT_PRESET
    if arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
    options = train_options(name, arguments)
    short = {"run.epochs": options.epochs, "run.threads": options.threads}
    config = override(options.config, {k: v for k, v in short.items() if v is not None})
    from amago import api
    from amago.training.view import make_view

    folder = options.run_dir or api.new_run_dir(name, options.seed)
    view = make_view(config.run.epochs)
    return run_to_the_end(
        folder,
        lambda: api.train(config, options.seed, folder, preset=name, view=view),
    )


def train_options(name: str, arguments: Sequence[str]) -> TrainOptions:
    """The preset with its ablations, then its overrides; `--env.kwargs.NAME VALUE` may name any
    argument."""
    size = values_of("--size", arguments)[-1:]
    config = ablate(preset(name, *size), values_of("--ablate", arguments))
    kwargs: dict[str, Any] = {}
    rest = []
    remaining = iter(arguments)
    for argument in remaining:
        key, equals, value = argument.partition("=")
        if not key.startswith("--env.kwargs."):
            rest.append(argument)
            continue
        value = value if equals else next(remaining, "")
        kwargs[key.removeprefix("--")] = literal(value)
    config = override(config, kwargs)
    options: TrainOptions = parse(TrainOptions, rest, f"amago train {name}", TrainOptions(config))
    return options


def resume(arguments: Sequence[str]) -> int:
    options = parse(ResumeOptions, arguments, "amago resume")
    from amago import api
    from amago.training.header import read_config
    from amago.training.view import make_view

    view = make_view(options.epochs or read_config(options.run).run.epochs)
    return run_to_the_end(
        options.run,
        lambda: api.resume(
            options.run,
            view=view,
            epoch=options.from_,
            epochs=options.epochs,
            trust=options.trust,
        ),
    )
