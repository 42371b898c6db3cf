"""`amago export`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import parse


@dataclass(frozen=True)
class ExportOptions:
    """Write a trained agent for other programs: one step, with its memory, as ONNX."""

    run: tyro.conf.Positional[str]
    """A run folder, a packed agent, or zoo:NAME."""
    onnx: Path
    """The file to write (.onnx); without a name, that of the agent, in this folder."""
    which: str = "latest"
    """Checkpoint: latest, best, or an epoch."""
    env: str | None = None
    """The environment as module:Class, for a run made from Python with a class of its own."""
    trust: bool = False
    """Import the module of the run's environment: the run is yours."""
    check_steps: int = 200
    """Steps over which the file is compared with the agent in ONNX Runtime; 0: none."""


def export(arguments: Sequence[str]) -> int:
    options = parse(ExportOptions, _with_file(arguments), "amago export")
    if options.onnx.suffix != ".onnx":
        raise ValueError(f"--onnx takes a file that ends in .onnx, got {options.onnx}")
    from amago import api
    from amago.envs.registry import make_vector
    from amago.process import prepare_process
    from amago.saved.source import find_source
    from amago.serving.onnx import export_onnx, largest_difference

    _check_writable(options.onnx)
    prepare_process(1)
    loaded = api.load(options.run, which=options.which, env=options.env, trust=options.trust)
    config = find_source(options.run, options.which).config
    make_env = api.named_again(options.env, config)
    lanes = max(2, len(config.env.ids))
    vector = make_vector(config.env, seed=0, num_lanes=lanes, make_env=make_env)
    with contextlib.closing(vector):
        export_onnx(loaded.policy, vector.reset(), options.onnx)
        print(f"{options.onnx}: {options.onnx.stat().st_size / 1000:.0f} kB")
        if options.check_steps:
            worst = largest_difference(options.onnx, loaded.policy, vector, options.check_steps)
            print(f"largest difference over {options.check_steps} steps: {worst:.1g}")
            if not worst < 1e-3:
                raise ValueError(f"{options.onnx} differs from the agent by {worst:.2g}")
    return 0


def _check_writable(path: Path) -> None:
    """Fail before the minute that an export takes."""
    there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise ValueError(
            f"--onnx {path} cannot be written ({error.strerror}); choose another file"
        ) from error
    if not there:
        path.unlink()


def _with_file(arguments: Sequence[str]) -> list[str]:
    """A bare --onnx gets the name of the agent."""
    found, after = list(arguments), [*arguments[1:], "--"]
    for index, argument in enumerate(arguments):
        if argument == "--onnx" and index and after[index].startswith("-"):
            found[index] = f"--onnx={Path(arguments[0].removeprefix('zoo:')).name}.onnx"
    return found
