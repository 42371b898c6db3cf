"""Code blocks of a Markdown page, and a world in which they run fast.

`python` blocks run in one namespace per page, `sh` blocks line by line in one folder per page;
`slow` after either name runs the block with the slow tests alone. Everything else, such as
`text`, is not run.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from test_run_helpers import few, short_world

import amago
from amago.baselines import recurrent_ppo
from amago.cli import main
from amago.config import Config, override
from amago.presets.sizes import SIZES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: what it is, what it says, and where."""

    kind: str
    code: str
    line: int

    @property
    def language(self) -> str:
        return self.kind.split()[0] if self.kind else ""

    @property
    def slow(self) -> bool:
        return "slow" in self.kind.split()[1:]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match["kind"].strip(), match["code"], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
    ]


def commands(code: str) -> list[str]:
    """The command lines of a shell block, continued lines joined and comments left out."""
    joined = code.replace("\\\n", " ")
    found = [" ".join(shlex.split(line, comments=True)) and line for line in joined.splitlines()]
    return [line for line in found if line]


def run_page(page: Path, *, slow: bool) -> None:
    """Run the blocks of a page in the current folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.slow and not slow:
            continue
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            # The lines of an error are those of the page.
            code = compile("\n" * block.line + block.code, str(page), "exec")
            exec(code, namespace)
        elif block.language == "sh":
            for line in commands(block.code):
                _run(line, where)


def _run(line: str, where: str) -> None:
    verb, *arguments = shlex.split(line, comments=True)
    if verb == "amago":
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code, f"{where}: {line} ended with {ended.value.code}"
        return
    assert verb == "python", f"{where}: only amago and python run in sh blocks, got {line!r}"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == 0, f"{where}: {line}"


def shrunk(config: Config) -> Config:
    """The same run with tiny networks, few updates and short rollouts."""
    world = short_world(config)
    if config.env.trials is not None and "amago/" not in config.env.id:
        world = {"rollout.steps_per_epoch": 12, "replay.context_length": 8}
    enough = max(2, len(config.env.ids))  # every task needs a rollout
    episodes = {"run.eval_episodes": enough, "run.final_eval_episodes": enough}
    return override(config, {**few(config), **SIZES["tiny"].settings(), **world, **episodes})


def _touch(figure: Figure, path: Any, **_: Any) -> None:
    if isinstance(path, str | Path):  # not a picture inside a report
        Path(path).touch()


@contextlib.contextmanager
def fast_world(folder: Path) -> Iterator[None]:
    """Inside of it all runs are tiny, jobs run in this process, and files go to the folder."""
    create = amago.api.create

    def create_shrunk(path: Path, config: Config, *args: Any, **kwargs: Any) -> Any:
        return create(path, shrunk(config), *args, **kwargs)

    def run_here(jobs: Any, num_parallel: int, root: Path, **_: Any) -> Any:
        from amago.sweep.jobs import amago_command
        from amago.sweep.queue import Outcome

        for job in jobs:
            with pytest.raises(SystemExit):
                main(amago_command(job, "start")[3:])
        return Outcome([], list(jobs), [])

    learn = recurrent_ppo.train

    def learn_shrunk(path: Path, config: Config, *args: Any, **kwargs: Any) -> Any:
        return learn(path, shrunk(config), *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(recurrent_ppo, "train", learn_shrunk)
        patch.setattr("amago.baselines.distillation.create", create_shrunk)
        patch.syspath_prepend(str(folder))
        patch.setattr("amago.api.create", create_shrunk)
        patch.setattr(f"{create.__module__}.create", create_shrunk)
        patch.setattr("amago.sweep.sweep.run_jobs", run_here)
        # Drawing takes longer than such runs, and has tests of its own.
        patch.setattr(Figure, "savefig", _touch)
        yield
