"""`amago baseline`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from amago.baselines.catalogue import METHODS, find_method, listing
from amago.baselines.settings import HistorySettings, PpoSettings
from amago.cli.parsing import parse
from amago.cli.train import chosen_config
from amago.config import Config, override
from amago.envs.catalogue import full_id
from amago.training.hooks import StopWhen

_DEFAULTS = ("recurrent-ppo", "dark-key-to-door")


@dataclass(frozen=True)
class BaselineOptions:
    """Train another method in the same kind of run folder; --list shows them."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    ppo: PpoSettings = field(default_factory=PpoSettings)
    histories: HistorySettings = field(default_factory=HistorySettings)
    seed: int = 0
    """Seed of every random source of the run."""
    run_dir: Path | None = None
    """Folder of the run; unset: a new one in runs/."""
    exist: Literal["error", "overwrite"] = "error"
    """What to do where --run-dir already has a run: refuse, or replace it."""
    minutes: float | None = None
    """Short for --run.max-minutes."""
    epochs: int | None = None
    """Short for --run.epochs."""
    threads: int | None = None
    """Short for --run.threads."""
    size: str | None = None
    """Widths of all networks, as for `amago train`."""
    ablate: tuple[str, ...] = ()
    """Ablations of parts that this method also has, such as no-planning."""


def baseline(arguments: Sequence[str]) -> int:
    if "--list" in arguments:
        return _list()
    names = [argument for argument in arguments[:2] if not argument.startswith("-")]
    if not names and not {"-h", "--help"} & set(arguments):
        raise ValueError(
            "expected the name of a method, as in `amago baseline recurrent-ppo t-maze`; "
            "`amago baseline --list` shows all of them"
        )
    method, preset = (*names, *_DEFAULTS[len(names) :])
    options = baseline_options(method, preset, arguments[len(names) :])
    short = {
        "run.epochs": options.epochs,
        "run.max_minutes": options.minutes,
        "run.threads": options.threads,
    }
    config = override(options.config, {k: v for k, v in short.items() if v is not None})
    from amago.arguments import new_run_dir, run_name
    from amago.cli.evaluations import print_evaluation, stopped
    from amago.stopping import Terminated, stoppable

    name = f"{run_name(config, preset)}-{method}"
    folder = options.run_dir or new_run_dir(name, options.seed)
    try:
        with stoppable():
            result = train_baseline(method, folder, config, options, preset)
    except (KeyboardInterrupt, Terminated) as stop:
        return stopped(folder, stop)
    print_evaluation(result, config.env)
    print(f"curves: {folder / 'curves.png'}")
    return 0


def baseline_options(method: str, preset: str, arguments: Sequence[str]) -> BaselineOptions:
    """The preset with the method's changes, then the overrides."""
    own = find_method(method)
    config, rest = chosen_config(preset, arguments, own.changes)
    default, prog = BaselineOptions(config), f"amago baseline {method} {preset}"
    options: BaselineOptions = parse(BaselineOptions, rest, prog, default)
    played = options.config.env.id
    if own.env_id and full_id(played) != own.env_id:
        raise ValueError(
            f"{method} knows {own.env_id} alone, got {played}; name the preset dark-key-to-door"
        )
    for section in {known.section for known in METHODS.values()} - {own.section}:
        if getattr(options, section) != getattr(default, section):
            raise ValueError(
                f"--{section} belongs to another method than {method}, whose own settings are "
                f"--{own.section}; leave it out"
            )
    if options.minutes is not None and options.minutes <= 0:
        raise ValueError(f"--minutes must be more than 0, got {options.minutes}")
    return options


def train_baseline(
    method: str,
    folder: Path,
    config: Config,
    options: BaselineOptions,
    preset: str,
    stop_when: StopWhen | None = None,
) -> dict[str, Any]:
    """Train and test a method; its result."""
    work = {"recurrent-ppo": _recurrent_ppo, "algorithm-distillation": _distillation}[method]
    return work(folder, config, options, preset, stop_when)


def _list() -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Methods beside amago's own", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method and command", no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for name, summary, command in listing():
        table.add_row(f"{name}\n  {command}", summary)
    Console().print(table, highlight=False, markup=False)
    return 0


def _recurrent_ppo(
    folder: Path,
    config: Config,
    options: BaselineOptions,
    preset: str,
    stop_when: StopWhen | None,
) -> dict[str, Any]:
    from amago.check.before import check_before_training, is_foreign
    from amago.envs.extras import need
    from amago.envs.registry import single_env
    from amago.report.curves import plot_run
    from amago.report.runs import read_run
    from amago.training.view import make_view

    need("sb3_contrib", "baselines", "recurrent-ppo")
    from amago.baselines.recurrent_ppo import train

    if is_foreign(config.env):
        check_before_training(
            partial(single_env, config.env), options.seed, config.env.timeout_seconds
        )
    result = train(
        folder,
        config,
        options.seed,
        options.ppo,
        make_view(config.run.epochs),
        preset=preset,
        stop_when=stop_when,
        overwrite=options.exist == "overwrite",
    )
    plot_run(read_run(folder), folder / "curves.png", result["references"])
    return result


def _distillation(
    folder: Path,
    config: Config,
    options: BaselineOptions,
    preset: str,
    stop_when: StopWhen | None,
) -> dict[str, Any]:
    from amago import api
    from amago.baselines.distillation import prepare
    from amago.training.view import make_view

    made = prepare(
        folder,
        config,
        options.seed,
        options.histories,
        preset=preset,
        overwrite=options.exist == "overwrite",
    )
    print(f"learning histories: {json.dumps(made)}")
    return api.resume(folder, view=make_view(config.run.epochs), stop_when=stop_when).result
