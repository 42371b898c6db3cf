"""One visitor's conversation: requests in, replies out, a session between them. No web code."""

from __future__ import annotations

from typing import Any

from amago.envs.catalogue import domain_of
from amago.goals import GoalSpec
from amago.play.frames import data_url
from amago.play.session import Row, Session
from amago.play.shelf import Shelf

Reply = dict[str, Any]
_EVENTS = {
    "step": Session.step,
    "back": Session.back,
    "wipe": Session.wipe,
    "change": Session.change,
    "transplant": Session.transplant,
}
_MOVE_OTHERS = ("change", "back")
"""Requests after which random play and the oracle may earn something else."""


class Visitor:
    """Holds at most one session, and the returns of both players in its world."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._session: Session | None = None
        self._returns: dict[str, list[float]] = {}
        """Return so far at every step of earlier rollouts in the session's world, by player."""
        self._head = (-1, -1)

    def do(self, request: dict[str, Any]) -> None:
        """What a checked request asks for, up to what the agent thinks of it; ValueError for what
        cannot be done."""
        kind = request["type"]
        if kind == "begin":
            self._begin(request)
            return
        session = self._playing()
        if kind == "head":
            self._head = self._checked_head(session, request["layer"], request["head"])
        elif kind == "move":
            session.step(request["move"])
        elif kind in _EVENTS:
            _EVENTS[kind](session)

    @property
    def waiting(self) -> Session | None:
        """The session, if its agent is to think."""
        return self._session if self._session is not None and self._session.waits else None

    def reply(self, request: dict[str, Any]) -> Reply:
        """The answer to a request that was done."""
        session, kind = self._playing(), request["type"]
        if kind == "look":
            return {"type": "row", **_row(session, session.look(request["index"]))}
        if kind == "parse":
            return _parsed(session, request["text"])
        if kind == "begin":
            return {"type": "began", **self._described(session), "state": self._state(session)}
        others = {"others": _others(session)} if kind in _MOVE_OTHERS else {}
        return {"type": "state", **self._state(session), **others}

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _playing(self) -> Session:
        if self._session is None:
            raise ValueError("begin a session first")
        return self._session

    def _begin(self, request: dict[str, Any]) -> None:
        loaded = self._shelf.load(request["agent"])
        session = Session(
            loaded,
            request["seed"],
            instruction=request["instruction"],
            player=request["player"],
            dark=request["dark"],
        )
        before = self._session
        if before is None or _place(before) != _place(session):
            self._returns = {}
        else:
            self._returns[before.player] = _sums(before.rewards)
        self.close()
        self._session, self._head = session, (-1, -1)

    def _described(self, session: Session) -> Reply:
        world, mind = session.world, session.mind
        domain = domain_of(world.settings.id)
        goals = world.spec.goals
        return {
            "agent": session.loaded.key,
            "seed": session.seed,
            "player": session.player,
            "environment": world.spec.name,
            "horizon": world.horizon,
            "actions": list(session.action_names),
            "picture": domain.picture,
            "sees": domain.sees,
            "moves": [{"name": move.name, "key": move.key} for move in world.moves],
            "discounts": mind.discounts,
            "acting_discount": mind.acting_discount,
            "layers": mind.num_layers,
            "heads": mind.num_heads,
            "change": None if world.change is None else world.change.text,
            "why_not_change": None if world.change is not None else world.why_not,
            "dark": session.dark,
            "can_be_dark": world.can_be_dark,
            "asked_for": session.instruction,
            "goals": None if goals is None else _goal_help(goals, session),
            **_others(session),
            "returns": {k: v for k, v in self._returns.items() if k != session.player},
        }

    def _state(self, session: Session) -> Reply:
        thought, past = session.thought, session.past
        chosen = None
        if thought is not None and thought.probabilities is not None and session.chosen is not None:
            chosen = int(session.chosen[0])
        return {
            **_row(session, session.rows[-1]),
            "total": round(sum(session.rewards), 3),
            "ended": session.ended,
            "asked": session.world.asked(session.row),
            "chosen": chosen,
            "probabilities": None if thought is None else thought.probabilities,
            "mean": None if thought is None else thought.mean,
            "deviation": None if thought is None else thought.deviation,
            "values": None if thought is None else thought.values,
            "attention": self._attention(session),
            "foreign": sum(not row.own for row in past),
            "start": next((row.time for row in past if row.own), session.time),
            "experiments": [[e.kind, e.time] for e in session.events if e.kind != "step"],
        }

    def _attention(self, session: Session) -> list[float] | None:
        if session.thought is None or session.thought.attention is None:
            return None
        weights, (layer, head) = session.thought.attention, self._head
        shown = weights.mean((0, 1)) if layer < 0 else weights[layer, head]
        rounded: list[float] = shown.double().round(decimals=4).tolist()
        return rounded

    def _checked_head(self, session: Session, layer: int, head: int) -> tuple[int, int]:
        if (layer, head) == (-1, -1):
            return layer, head
        if not (0 <= layer < session.mind.num_layers and 0 <= head < session.mind.num_heads):
            raise ValueError(f"this agent has no head {head} in layer {layer}")
        return layer, head


def _row(session: Session, row: Row) -> Reply:
    frame = session.frames.get(row.frame)
    return {
        "time": row.time,
        "obs": row.obs,
        "reward": round(row.reward, 3),
        "first": row.first,
        "own": row.own,
        "frame": None if frame is None else data_url(frame),
    }


def _parsed(session: Session, text: str) -> Reply:
    """How an instruction is understood, or the parser's message."""
    goals = session.world.spec.goals
    if goals is None:
        raise ValueError(f"{session.world.spec.name} follows no instructions")
    try:
        read = goals.instruction(text)
    except ValueError as error:
        return {"type": "parsed", "text": text, "goals": [], "message": str(error)}
    names = [goals.write(goal[None]) for goal in read]
    return {"type": "parsed", "text": text, "goals": names, "message": ""}


def _goal_help(goals: GoalSpec, session: Session) -> str:
    """How many goals may be asked for, what one looks like, and which words or numbers it has."""
    example = session.world.asked(session.row)[0][0]
    text = f"1 to {goals.max_goals} goals such as {example!r}, separated by commas; "
    if goals.kind == "token":
        words = [word for word in goals.vocabulary if word and not word.isdecimal()]
        return text + f"words: {', '.join(words)}"
    low, high = (", ".join(f"{x:g}" for x in bound) for bound in (goals.low, goals.high))
    return text + f"numbers from {low} to {high}"


def _others(session: Session) -> Reply:
    """Return so far of the oracle and of random play in the session's world."""
    oracle = None if session.rivals.best is None else _sums(session.rivals.best)
    return {"oracle": oracle, "random": session.rivals.random}


def _place(session: Session) -> tuple[str, int, str]:
    return session.loaded.key, session.seed, session.instruction


def _sums(rewards: list[float]) -> list[float]:
    total, sums = 0.0, []
    for reward in rewards:
        total += reward
        sums.append(round(total, 3))
    return sums
