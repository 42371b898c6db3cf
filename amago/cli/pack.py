"""`amago pack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import gathered, parse


@dataclass(frozen=True)
class PackOptions:
    """Turn a finished run into one file that a colleague can load safely."""

    run: tyro.conf.Positional[Path]
    """The run folder."""
    out: Path | None = None
    """The file to write; unset: RUN.safetensors beside the run."""
    which: str = "latest"
    """Checkpoint: latest, best, or an epoch."""
    also: tuple[Path, ...] = ()
    """Runs of the same command with other seeds, whose scores the card shows."""
    control: tuple[str, ...] = ()
    """Scores to stand beside, as NAME=RUN: no-memory=runs/dktd-feedforward."""
    cannot: tuple[str, ...] = ()
    """What the agent cannot do, one sentence each."""
    half: bool = False
    """Store weights as float16: half the size, and the last digits are lost."""


def pack(arguments: Sequence[str]) -> int:
    for flag in ("--also", "--control", "--cannot"):
        arguments = gathered(flag, arguments)
    options = parse(PackOptions, arguments, "amago pack")
    from amago.saved.packed import SUFFIX
    from amago.zoo import pack as zoo

    folder = options.run.resolve()
    out = options.out or folder.parent / (folder.name + SUFFIX)
    if out.suffix != SUFFIX:
        raise ValueError(f"--out takes a file that ends in {SUFFIX}, got {out}")
    controls = {}
    for text in options.control:
        name, equals, run = text.partition("=")
        if not equals:
            raise ValueError(f"--control takes NAME=RUN, got {text!r}")
        controls[name] = Path(run)
    zoo.pack(
        options.run,
        out,
        also=options.also,
        controls=controls,
        cannot=options.cannot,
        which=options.which,
        half=options.half,
    )
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB; play it with `amago watch {out}`")
    return 0
