"""What every case is given: how hard to measure, on how many threads, beside what."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from amago.bench.timing import Effort

SOURCE = Path(__file__).resolve().parents[2]
"""Where the package lies: the repository, or site-packages."""
QUICK = Effort(rounds=3, max_rounds=3, block_seconds=0.1)


def _silent(message: str) -> None: ...


@dataclass(frozen=True)
class Bench:
    """The conditions of one run of `amago bench`."""

    threads: int = 1
    effort: Effort = field(default_factory=Effort)
    quick: bool = False
    """Leave out what takes minutes."""
    plain: ModuleType | None = None
    """benchmarks/plain.py, where amago runs from its repository."""
    say: Callable[[str], None] = _silent
    """Told what is going on."""


def benchmarks_folder() -> Path | None:
    """benchmarks/ of the repository that this amago runs from, if it does."""
    folder = SOURCE / "benchmarks"
    return folder if (folder / "plain.py").exists() else None


def load_plain() -> ModuleType | None:
    """The obvious implementation, which is no part of the installed package."""
    folder = benchmarks_folder()
    if folder is None:
        return None
    name = "amago_benchmarks_plain"
    spec = importlib.util.spec_from_file_location(name, folder / "plain.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
