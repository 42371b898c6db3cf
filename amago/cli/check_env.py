"""`amago check-env`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import gathered, parse
from amago.config import literal


@dataclass(frozen=True)
class CheckEnvOptions:
    """Look for what would go wrong before training, and say what training would cost."""

    id: tyro.conf.Positional[str]
    """The environment, as --env.id of `amago train` takes it; or the file of an error to repeat."""
    kwargs: tuple[str, ...] = ()
    """Arguments of its constructor, as name=value."""
    steps: int = 1000
    """Random steps to play."""
    seed: int = 0
    """Seed of the play."""
    trust: bool = False
    """For an error file: import the modules that it names."""


def check_env(arguments: Sequence[str]) -> int:
    options = parse(CheckEnvOptions, gathered("--kwargs", arguments), "amago check-env")
    from amago.check.any_env import check_env as look
    from amago.envs.settings import EnvSettings

    if options.id.endswith(".fault.json"):
        return _repeat(Path(options.id), trust=options.trust)
    if options.steps < 1:
        raise ValueError(f"--steps must be at least 1, got {options.steps}")
    unclear = [assignment for assignment in options.kwargs if "=" not in assignment]
    if unclear:
        raise ValueError(f"--kwargs expects name=value, got {unclear[0]!r}; for example bits=3")
    pairs = [assignment.partition("=") for assignment in options.kwargs]
    kwargs = {name: literal(value) for name, _, value in pairs}
    check = look(EnvSettings(id=options.id, kwargs=kwargs), options.steps, seed=options.seed)
    print(check)
    return 1 if check.problems else 0


def _repeat(path: Path, *, trust: bool) -> int:
    """Play the rollout of a recorded error again."""
    from amago.check.repeat import repeat

    found = repeat(path, trust=trust)
    print(found or "the rollout was played to its end, and nothing failed this time")
    return 1 if found else 0
