"""`python -m amago.bench.first_update PRESET`: `amago train PRESET` up to its first update."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

REACHED = 42
"""The exit code that says so."""


def main(arguments: list[str]) -> None:
    from amago.agent.update import Learner

    learn = Learner.learn

    def learn_once(self: Learner, share: Any) -> Any:
        learn(self, share)
        os._exit(REACHED)

    Learner.learn = learn_once  # type: ignore[method-assign]
    sys.argv = ["amago", "train", *arguments]
    runpy.run_module("amago", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
