"""The agents that a page may reach: those of the zoo and the runs that were named, no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amago import api
from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.config import Config
from amago.play.probe import Mind
from amago.saved import packed
from amago.saved.source import ZOO_PREFIX, find_source, zoo_names
from amago.zoo.cards import needed_extra, reference

_DEFAULT = "dark-key-to-door"


@dataclass(frozen=True)
class Loaded:
    """Networks and settings that sessions share."""

    key: str
    agent: Agent
    config: Config

    def mind(self) -> Mind:
        """The agent for one session."""
        policy = AgentPolicy(self.agent, seed=0, greedy=self.config.agent.greedy)
        return Mind(policy, self.config.agent.reward_scale)


class Shelf:
    """Agents by a key that means nothing to the file system; networks are loaded once."""

    def __init__(self, runs: Sequence[str] = (), *, trust: bool = False) -> None:
        """`trust` vouches for the modules that the runs name."""
        self._trust = trust
        self._sources: dict[str, str] = {}
        for run in runs:
            find_source(_full(run))  # a wrong name fails now, not when a visitor picks it
            self._sources[self._free_key(Path(run).stem or run)] = _full(run)
        for name in zoo_names():
            if ZOO_PREFIX + name not in self._sources.values():
                self._sources[self._free_key(name)] = ZOO_PREFIX + name
        self.default = next(iter(self._sources)) if runs else _DEFAULT
        self._loaded: dict[str, Loaded] = {}
        self._cards = [self._described(key, name) for key, name in self._sources.items()]

    def load(self, key: str) -> Loaded:
        if key not in self._sources:
            raise ValueError(f"no agent is called {key!r} here; there are {list(self._sources)}")
        if key not in self._loaded:
            name = self._sources[key]
            agent = api.load(name, trust=self._trust).policy.agent.eval()
            self._loaded[key] = Loaded(key, agent, find_source(name).config)
        return self._loaded[key]

    def describe(self) -> list[dict[str, Any]]:
        """What the page says of each agent, without loading any."""
        return self._cards

    def _described(self, key: str, name: str) -> dict[str, Any]:
        source = find_source(name)
        card = packed.read_card(source.path) if source.is_packed else None
        env = source.config.env
        return {
            "key": key,
            "environment": env.id,
            "arguments": {str(k): str(v) for k, v in env.kwargs.items()},
            "kind": "zoo" if name.startswith(ZOO_PREFIX) else "run",
            "memory": source.config.memory,
            "default": key == self.default,
            "command": None if card is None else card.command,
            "needs": "" if card is None else needed_extra(card),
            "limits": [] if card is None else card.cannot,
            "score": None if card is None else _score(card.result),
            "random": None if card is None else _score(reference(card, "random")),
        }

    def _free_key(self, wanted: str) -> str:
        key, number = wanted, 2
        while key in self._sources:
            key, number = f"{wanted} ({number})", number + 1
        return key


def _full(name: str) -> str:
    """An agent of the zoo may be called without its prefix."""
    return ZOO_PREFIX + name if name in zoo_names() and not Path(name).exists() else name


def _score(scores: dict[str, Any] | None) -> float | None:
    return None if scores is None else round(float(scores["return_mean"]), 2)
