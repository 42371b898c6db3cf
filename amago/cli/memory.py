"""`amago memory`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class MemoryOptions:
    """Report how far memory reaches, what recall is worth and what a false fact costs."""

    run: tyro.conf.Positional[str]
    """A run folder, a packed agent, or zoo:NAME."""
    episodes: int = 64
    """Rollouts for each length of recall; half as many worlds are changed."""
    seed: int = 0
    """Seed of the worlds and of sampling."""
    which: str = "latest"
    """Checkpoint: latest, best, or an epoch."""
    out: Path | None = None
    """Folder for memory.json and memory.png; unset: the run's, or this one for a packed agent."""
    json: bool = False
    """Print the JSON object instead of tables."""
    threads: int = 1
    """Torch threads."""
    env: str | None = None
    """The environment as module:Class, for a run made from Python with a class of its own."""
    trust: bool = False
    """Import the module of the run's environment: the run is yours."""


def memory(arguments: Sequence[str]) -> int:
    options = parse(MemoryOptions, arguments, "amago memory")
    from rich.console import Console

    from amago import api
    from amago.evaluation.memory import MemoryReport
    from amago.evaluation.play import PlaySettings
    from amago.process import prepare_process
    from amago.report.memory import memory_tables, plot_memory
    from amago.saved.source import find_source

    if options.episodes < 2:
        raise ValueError(f"--episodes must be at least 2, got {options.episodes}")
    prepare_process(options.threads)
    loaded = api.load(options.run, which=options.which, env=options.env, trust=options.trust)
    config = find_source(options.run, options.which).config
    make_env = api.named_again(options.env, config)
    settings = PlaySettings.of_seed(options.seed, greedy=loaded.policy.greedy)
    parts = MemoryReport(options.episodes, changed_worlds=options.episodes // 2)
    report = parts.measure(loaded.policy.agent, config.env, settings, make_env=make_env)
    folder = options.out or (Path(options.run) if Path(options.run).is_dir() else Path())
    folder.mkdir(parents=True, exist_ok=True)
    report = {"agent": options.run, "seed": options.seed, **report}
    (folder / "memory.json").write_text(json.dumps(report, indent=1) + "\n")
    plot_memory(report, folder / "memory.png", f"{report['env']}: {report['memory']} memory")
    if options.json:
        print(json.dumps(report))
        return 0
    console = Console()
    for part in memory_tables(report):
        console.print(part, highlight=False, markup=False)
    print(f"numbers: {folder / 'memory.json'}")
    if (folder / "memory.png").is_file():
        print(f"picture: {folder / 'memory.png'}")
    return 0
