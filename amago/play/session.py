"""One visitor's rollout: step, back, experiments on memory. No web code, and bounded memory.

What happened is a list of events. Going back forgets the last step and plays the others again
from the seed, so a session keeps actions rather than copies of worlds and memories.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amago.envs.catalogue import action_names
from amago.play.frames import FrameStore
from amago.play.probe import Answer, Mind, Moment, Thought, think
from amago.play.rivals import Rivals
from amago.play.shelf import Loaded
from amago.play.world import World
from amago.types import Array, Timestep

_MAX_EXPERIMENTS = 24
"""Wipes, changes and transplants per rollout: playing again repeats them."""
_EMPTYING = ("wipe", "transplant")
"""Experiments after which memory holds nothing of what it held."""
_OBS_NUMBERS = 24
"""Most numbers of an observation that a row shows."""


@dataclass(frozen=True)
class Row:
    """What a past step looked like."""

    time: int
    obs: dict[str, list[float]]
    reward: float
    """Paid by the step into this row."""
    first: bool
    frame: int
    """Where its picture is in the session's FrameStore."""
    own: bool = True
    """False for rows of another lane, which a transplant brought."""


@dataclass(frozen=True)
class _Event:
    kind: str
    """step, wipe, change or transplant."""
    time: int
    action: Array | None = None


@dataclass
class _Rollout:
    """Everything that playing again rebuilds."""

    row: Timestep
    memory: Any
    past: list[Row] = field(default_factory=list)
    """The rows that memory holds, oldest first."""


class Session:
    """An agent (or a person) in the world of a seed."""

    def __init__(
        self,
        loaded: Loaded,
        seed: int,
        *,
        instruction: str = "",
        player: str = "agent",
        dark: bool = False,
    ) -> None:
        self.loaded, self.seed, self.player, self.instruction = loaded, seed, player, instruction
        self.dark = dark
        self.mind: Mind = loaded.mind()
        self.world = World(loaded.config.env, seed, instruction)
        if player == "you" and not self.world.moves:
            self.world.close()
            raise ValueError(f"{self.world.spec.name} has no actions that fit on a keyboard")
        self.action_names = action_names(self.world.settings.id, self.world.spec.action)
        self.frames = FrameStore()
        self.rivals = Rivals(self.world)
        self.events: list[_Event] = []
        self.rows: list[Row] = []
        self.rewards: list[float] = []
        self._thought: Thought | None = None
        self._chosen: Array | None = None
        self.waits = False
        """Whether the agent has yet to think about the row where the rollout is now."""
        self._donated: tuple[tuple[int, int], list[Row]] | None = None
        """The rows of the last transplant, and which one it was."""
        self._rollout = self._begin()
        self._arrive()

    @property
    def time(self) -> int:
        return len(self.rewards)

    @property
    def ended(self) -> bool:
        return bool(self._rollout.row.last[0]) or self.time >= self.world.horizon

    @property
    def thought(self) -> Thought | None:
        """What the agent thinks now; None after the end."""
        self._catch_up()
        return self._thought

    @property
    def chosen(self) -> Array | None:
        """What the agent would do next; what it does, if it is the player."""
        self._catch_up()
        return self._chosen

    @property
    def past(self) -> list[Row]:
        """The rows that memory holds, oldest first."""
        self._catch_up()
        return self._rollout.past

    @property
    def row(self) -> Timestep:
        """Where the rollout is now."""
        return self._rollout.row

    def moment(self) -> Moment:
        """What the agent is to think about. Thinking writes the row into memory; the step that
        follows only moves the world."""
        rollout = self._rollout
        return Moment(self.mind, rollout.row, rollout.memory, _seed(self.seed, self.time))

    def hear(self, answer: Answer) -> None:
        """What the agent thought about the moment."""
        self._chosen, self._rollout.memory, self._thought = answer
        self._remember(self._rollout, self.rows[self.time])
        self.waits = False

    def step(self, move: int | None = None) -> None:
        """Take the agent's action, or the person's."""
        if self.ended:
            raise ValueError("this rollout has ended; begin again, or choose another world")
        if (move is None) == (self.player == "you"):
            wanted = "a move" if self.player == "you" else "no move: the agent plays"
            raise ValueError(f"expected {wanted}")
        chosen = self.chosen  # memory gets this row also where a person decides
        action = chosen if move is None else self._move(move)
        assert action is not None
        self.events.append(_Event("step", self.time, action))
        self._rollout.row = self.world.step(action)
        self.rewards.append(float(self._rollout.row.prev_reward[0]))
        self._arrive()

    def back(self) -> None:
        """One step back, together with the experiments since then."""
        steps = [index for index, event in enumerate(self.events) if event.kind == "step"]
        if not steps:
            raise ValueError("this is the first step; there is nothing before it")
        self.events = self.events[: steps[-1]]
        self.rewards.pop()
        del self.rows[self.time :]
        self._replay()
        self._arrive()

    def wipe(self) -> None:
        """Empty the memory; the rollout goes on."""
        self._experiment("wipe")

    def change(self) -> None:
        """Change the world under the agent, which is not told."""
        if self.world.change is None:
            raise ValueError(
                f"{self.world.spec.name} cannot be changed under the agent: {self.world.why_not}"
            )
        self._experiment("change")

    def transplant(self) -> None:
        """Give the agent the memory of another lane, as old as its own but of another world."""
        self._experiment("transplant")

    def look(self, index: int) -> Row:
        """What was there at a past row that memory holds."""
        if not 0 <= index < len(self.past):
            raise ValueError(f"memory holds {len(self.past)} rows, got row {index}")
        return self.past[index]

    def close(self) -> None:
        self.world.close()

    def _move(self, move: int) -> Array:
        if not 0 <= move < len(self.world.moves):
            raise ValueError(f"there are {len(self.world.moves)} moves, got move {move}")
        return self.world.moves[move].action

    def _begin(self) -> _Rollout:
        return _Rollout(self.world.begin(), self.mind.empty_memory())

    def _arrive(self) -> None:
        """Show the row where the rollout is now; the agent has yet to think about it."""
        row = self._rollout.row
        if len(self.rows) == self.time:
            # A rollout that has ended shows its next world already: its last picture stays.
            picture = None if self.ended and self.rows else self.world.picture(self.dark)
            frame = (
                self.rows[-1].frame if picture is None and self.rows else self.frames.add(picture)
            )
            self.rows.append(_row(row, self.time, frame))
        self._thought = self._chosen = None
        self.waits = not self.ended

    def _catch_up(self) -> None:
        if self.waits:
            self.hear(think([self.moment()])[0])

    def _remember(self, rollout: _Rollout, row: Row) -> None:
        rollout.past.append(row)
        longest = getattr(self.mind.agent.memory, "context_length", None)
        if longest is not None:
            del rollout.past[:-longest]

    def _experiment(self, kind: str) -> None:
        if sum(event.kind != "step" for event in self.events) >= _MAX_EXPERIMENTS:
            raise ValueError(
                f"{_MAX_EXPERIMENTS} experiments are enough for one rollout; begin again"
            )
        if self.ended:
            raise ValueError("this rollout has ended; begin again")
        self.events.append(_Event(kind, self.time))
        self._replay()
        if kind == "change":
            del self.rows[self.time :]  # the current row looks different now
        self._arrive()

    def _replay(self) -> None:
        """Play all events again, up to the row where the rollout is now, not yet thought about."""
        self._rollout = rollout = self._begin()
        self.rivals.begin()
        emptied = [n for n, event in enumerate(self.events) if event.kind in _EMPTYING]
        fresh = emptied[-1] if emptied else -1  # what memory held before this event is gone
        for number, event in enumerate(self.events):
            if event.kind == "step":
                assert event.action is not None
                if number > fresh:
                    _, rollout.memory = self.mind.act(rollout.row, rollout.memory, 0)
                    self._remember(rollout, self.rows[event.time])
                rollout.row = self.world.step(event.action)
            elif event.kind == "change":
                self.world.apply_change(_seed(self.seed, number))
                self.rivals.change(number, event.time)
            elif number == fresh and event.kind == "transplant":
                rollout.memory, rollout.past = self._donor(number, event.time)

    def _donor(self, number: int, steps: int) -> tuple[Any, list[Row]]:
        """Memory and rows of the same agent after as many steps in another world."""
        which = (number, steps)
        known = self._donated[1] if self._donated and self._donated[0] == which else None
        rows: list[Row] = []
        other = World(self.loaded.config.env, _seed(self.seed, 1000 + number) % 2**31)
        with contextlib.closing(other):
            donor = _Rollout(other.begin(), self.mind.empty_memory())
            while len(rows) < steps and not donor.row.last[0]:
                time = len(rows)
                frame = self.frames.add(other.picture()) if known is None else known[time].frame
                rows.append(_row(donor.row, time, frame, own=False))
                action, donor.memory = self.mind.act(donor.row, donor.memory, _seed(number, time))
                self._remember(donor, rows[-1])
                donor.row = other.step(action)
        self._donated = (which, rows)
        return donor.memory, donor.past


def _row(row: Timestep, time: int, frame: int, own: bool = True) -> Row:
    obs = {key: _numbers(value[0]) for key, value in row.obs.items()}
    return Row(time, obs, float(row.prev_reward[0]), bool(row.first[0]), frame, own)


def _numbers(values: Iterable[float] | Array) -> list[float]:
    return [round(float(value), 3) for value in np.ravel(np.asarray(values))[:_OBS_NUMBERS]]


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
