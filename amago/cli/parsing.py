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


def gathered(flag: str, arguments: Sequence[str]) -> list[str]:
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
