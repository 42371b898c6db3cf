"""Where a trained agent comes from: a run, one of its checkpoints, a packed file, or the zoo."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from amago.agent.agent import Agent, Parts
from amago.config import Config, from_dict
from amago.envs.registry import MakeEnv, env_spec
from amago.saved import checkpoint, kept, packed
from amago.saved.header import check_kept, read_header

_LOG = logging.getLogger("amago")
ZOO_PREFIX = "zoo:"
_ZOO_FOLDER = Path(__file__).resolve().parent.parent / "zoo" / "agents"
"""Packed agents that come with amago."""


@dataclass(frozen=True)
class Source:
    """A trained agent that can be built: its run's header, and where its weights are."""

    name: str
    """As the user called it."""
    header: dict[str, Any]
    path: Path
    """A packed file, or the folder of a checkpoint."""
    which: str = "latest"
    """The checkpoint that was asked for."""

    @property
    def config(self) -> Config:
        return from_dict(self.header["config"])

    @property
    def is_packed(self) -> bool:
        return self.path.suffix == packed.SUFFIX

    def build(self, make_env: MakeEnv | None = None, parts: Parts | None = None) -> Agent:
        """The agent with its weights; `make_env` replaces the environment of its run."""
        spec = env_spec(self.config.env, make_env)
        if parts is None or parts == Parts():
            # Shapes first, without memory: a file may claim any size.
            with torch.device("meta"):
                empty = Agent(spec, self.config)
            if self.path.exists():  # a trainer may have replaced it; `fill` looks again
                (packed if self.is_packed else checkpoint).check_shapes(self.path, empty)
        agent = Agent(spec, self.config, parts)
        self.fill(agent)
        return agent

    def fill(self, agent: Agent) -> None:
        """Put the weights into an agent of the same shapes."""
        if self.is_packed:
            return packed.read_weights(self.path, agent)
        try:
            checkpoint.load_agent(self.path, agent)
        except (ValueError, OSError):
            if self.path.is_dir():
                raise
            # A trainer has replaced this checkpoint since it was found.
            find_source(self.name, self.which).fill(agent)


def find_source(name: str | Path, which: str = "latest") -> Source:
    """A run folder, the folder of a checkpoint, a packed file or zoo:NAME."""
    text = str(name)
    path = zoo_path(text.removeprefix(ZOO_PREFIX)) if text.startswith(ZOO_PREFIX) else Path(name)
    if path.is_file():
        if which != "latest":
            raise ValueError(f"{name} holds one agent; leave out the checkpoint {which!r}")
        return Source(text, packed.read_card(path).header, path)
    if (path / checkpoint.MODEL).exists():
        return Source(text, read_header(path.resolve().parent.parent), path)
    header = read_header(path)
    check_kept(name, header)
    found = _find_checkpoint(path / "checkpoints", which)
    if found is None:
        known = ", ".join(kept.names(path / "checkpoints"))
        raise ValueError(
            f"{name} has no checkpoint {which!r}; "
            + (f"it has {known}" if known else f"train it further with `amago resume {name}`")
        )
    return Source(text, header, found, which)


def _find_checkpoint(folder: Path, which: str) -> Path | None:
    if which != "latest":
        return kept.find(folder, which)
    found, notes = kept.newest_sound(folder, checkpoint.problem)
    for note in notes:
        _LOG.warning(note)
    return found


def zoo_names() -> list[str]:
    """The agents that come with amago."""
    return sorted(
        path.name.removesuffix(packed.SUFFIX) for path in _ZOO_FOLDER.glob("*" + packed.SUFFIX)
    )


def zoo_path(name: str) -> Path:
    """The file of an agent of the zoo."""
    known = zoo_names()
    if name not in known:
        raise ValueError(
            f"no agent of the zoo is called {name!r}; `amago zoo` lists {', '.join(known)}"
        )
    return _ZOO_FOLDER / (name + packed.SUFFIX)
