"""What the verbs share: how arguments are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tyro


def parse(cls: Any, arguments: Sequence[str], prog: str, default: Any = None) -> Any:
    """The options of a verb. A verb that starts from a preset gives it as `default`; its
    switches then take True or False, so that either can be chosen."""
    keywords = {} if default is None else {"default": default}
    config = () if default is None else (tyro.conf.FlagConversionOff,)
    return tyro.cli(cls, args=list(arguments), prog=prog, config=config, **keywords)


def switched(arguments: Sequence[str], *names: str) -> list[str]:
    """Switches with their values: a bare --name is --name True, --no-name is --name False."""
    found: list[str] = []
    for argument, following in zip(arguments, [*arguments, ""][1:], strict=True):
        if argument.removeprefix("--no-") in names:
            found += [f"--{argument.removeprefix('--no-')}", "False"]
            continue
        found.append(argument)
        if argument.removeprefix("--") in names and following.lower() not in ("true", "false"):
            found.append("True")
    return found


def gathered(flag: str, arguments: Sequence[str]) -> list[str]:
    """Several uses of a flag with many values as one, because tyro keeps only the last."""
    values, rest = _split(flag, arguments)
    return [*rest, flag, *values] if values or flag in arguments else rest


def values_of(flag: str, arguments: Sequence[str]) -> list[str]:
    """What is given to a flag with many values, for those who need it before all else is read."""
    return _split(flag, arguments)[0]


def _split(flag: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of a flag, written --flag a b or --flag=a, and all other arguments."""
    values: list[str] = []
    rest: list[str] = []
    gathering = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name == flag:
            gathering = True
            values += [value] if equals else []
        elif argument.startswith("--"):
            gathering = False
            rest.append(argument)
        else:
            (values if gathering else rest).append(argument)
    return values, rest
