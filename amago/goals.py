"""Goals, instructions made of them, and the one rule that turns achieved goals into progress.

A goal is a row of `size` whole numbers, numbers, or word tokens. An instruction [n, size]
is followed in order: every step reports all goals that it achieved, whether asked for or
not, and `advance` says what that is worth. Environments call it as they go, relabeling
calls it again with other instructions; nothing else decides about rewards.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amago import ragged
from amago.goal_values import (
    check_bounds,
    check_fill,
    check_words,
    read_number,
    tokens_of,
    whole_numbers,
)
from amago.ragged import Ragged

_Array = NDArray[Any]

_REPEATED = re.compile(r"(.*\S)\s+x\s*(\d+)", re.IGNORECASE)


class ImpossibleGoalError(ValueError):
    """What is asked for is a goal of the domain, but cannot be achieved in this world."""


@dataclass(frozen=True)
class GoalSpec:
    """What can be asked for in a domain, and how many goals an instruction has at most.

    Numbers lie in low..high, one bound per number of a goal, and are whole unless said
    otherwise. Tokens are words of a closed vocabulary whose word 0 is "", which fills goals
    of fewer than `size` words. Text is read whatever its case.
    """

    max_goals: int
    size: int
    kind: Literal["number", "token"] = "number"
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    whole: bool = True
    vocabulary: tuple[str, ...] = ()
    repeats: bool = False
    """Whether instructions ask for a goal more than once; hindsight then may, too."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_goals <= 255 or self.size < 1:
            raise ValueError(
                "expected goals of at least 1 number, and 1 to 255 of them per instruction, got "
                f"size {self.size} and max_goals {self.max_goals}"
            )
        if self.kind == "token":
            check_words(self.vocabulary)
        else:
            check_bounds(self.low, self.high, self.size, self.whole)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest that holds every goal, since all achieved goals are stored."""
        if self.kind == "token":
            return np.min_scalar_type(len(self.vocabulary) - 1)
        if not self.whole:
            return np.dtype(np.float32)
        smallest = np.result_type(
            *(np.min_scalar_type(int(bound)) for bound in (*self.low, *self.high))
        )
        # What NumPy has for both int8 and uint64 is a float.
        return smallest if smallest.kind in "iu" else np.dtype(np.int64)

    def goals(self, values: ArrayLike) -> _Array:
        """Goals [n, size] of this domain, checked; duplicates stay."""
        given = np.asarray(values)
        if given.size == 0:
            return np.zeros((0, self.size), self.dtype)
        if given.ndim == 1 and self.size == 1:
            given = given[:, None]
        if given.ndim != 2 or given.shape[1] != self.size or given.dtype.kind not in "iuf":
            raise ValueError(
                f"expected goals of {self.size} numbers each, [n, {self.size}], got "
                f"{given.dtype} {list(given.shape)}"
            )
        low, high = self._bounds()
        whole = self.dtype.kind != "f"
        # Adding zero turns -0.0 into 0.0: goals are compared by their bytes.
        numbers = whole_numbers(given) if whole else given.astype(self.dtype) + np.float32(0.0)
        if numbers is None or not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(
                f"expected goals of {'whole ' if whole else ''}numbers in "
                f"{low.tolist()}..{high.tolist()}, got {given.tolist()}"
            )
        if self.kind == "token":
            check_fill(numbers)
        return numbers.astype(self.dtype)

    def instruction(self, asked: str | ArrayLike) -> _Array:
        """An instruction [n, size], 1 <= n <= max_goals, from text or from numbers."""
        try:
            goals = self.read(asked) if isinstance(asked, str) else self.goals(asked)
        except ValueError as error:
            raise ValueError(f"{error}; {self.describe()}") from error
        if not 1 <= len(goals) <= self.max_goals:
            raise ValueError(
                f"expected an instruction of 1 to {self.max_goals} goals, got {len(goals)}: "
                f"{asked!r}"
            )
        return goals

    def describe(self) -> str:
        """What can be asked for, for the end of an error."""
        if self.kind == "token":
            words = ", ".join(word for word in self.vocabulary if word)
            made_of = f"of up to {self.size} words among {words}"
        else:
            low, high = (self.write_goal(np.asarray(bound)) for bound in self._bounds())
            count = f"{self.size} number{'s' if self.size > 1 else ''}"
            made_of = f"of {count} from {low} to {high}"
        return f"an instruction is 1 to {self.max_goals} goals {made_of}, separated by commas"

    def read(self, text: str) -> _Array:
        """Goals [n, size] from text as `write` makes it: "(3, 7), (1, 2) x2", "eat cow"."""
        goals: list[list[float]] = []
        for part in re.split(r",(?![^(]*\))", text):
            match = _REPEATED.fullmatch(part.strip())
            body, times = (match[1], int(match[2])) if match else (part.strip(), 1)
            if not body:
                raise ValueError(f"expected goals separated by commas, got {text!r}")
            if times == 0:
                raise ValueError(
                    f"expected a goal once or more often, got {part.strip()!r}; leave it out"
                )
            # One too many is enough to be refused, however many were meant.
            goals += [self.read_goal(body)] * min(times, self.max_goals + 1)
        return self.goals(goals)

    def write(self, goals: ArrayLike) -> str:
        """Goals as text that `read` understands; equal neighbours become one with a count."""
        parts: list[tuple[str, int]] = []
        for goal in self.goals(goals):
            text = self.write_goal(goal)
            if parts and parts[-1][0] == text:
                parts[-1] = (text, parts[-1][1] + 1)
            else:
                parts.append((text, 1))
        return ", ".join(text if times == 1 else f"{text} x{times}" for text, times in parts)

    def read_goal(self, text: str) -> list[float]:
        """One goal from its words or numbers; a domain may have words of its own."""
        values = [self._value(word) for word in re.sub(r"[(),]", " ", text).split()]
        fill = self.size if self.kind == "token" else 0
        return values + [0] * (fill - len(values))

    def write_goal(self, goal: _Array) -> str:
        """The inverse of `read_goal`."""
        if self.kind == "token":
            return " ".join(self.vocabulary[token] for token in goal if token)
        numbers = [str(int(x)) if x == int(x) else str(np.float32(x)) for x in goal]
        return numbers[0] if self.size == 1 else f"({', '.join(numbers)})"

    def _bounds(self) -> tuple[_Array, _Array]:
        if self.kind == "token":
            last = len(self.vocabulary) - 1
            return np.zeros(self.size, np.int64), np.full(self.size, last, np.int64)
        if not self.whole:
            return np.array(self.low, np.float32), np.array(self.high, np.float32)
        low, high = ([int(bound) for bound in bounds] for bounds in (self.low, self.high))
        return np.array(low, np.int64), np.array(high, np.int64)

    def _value(self, word: str) -> float:
        if self.kind == "number":
            return read_number(word, self.whole)
        tokens = tokens_of(tuple(self.vocabulary))
        token = tokens.get(word.casefold())
        if token is None:
            close = difflib.get_close_matches(word.casefold(), tokens, n=3)
            meant = ", ".join(self.vocabulary[tokens[name]] for name in close)
            hint = f"; did you mean {meant}?" if close else ""
            raise ValueError(f"no goal has the word {word!r}{hint}")
        return token


def spec_from(values: dict[str, Any]) -> GoalSpec:
    """A GoalSpec from its `asdict`, also after a trip through JSON."""
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    return GoalSpec(**fields)


class Advance(NamedTuple):
    """What one step was worth in every lane, each [N]; or every row of one rollout, [T+1]."""

    progress: _Array  # int64, goals complete after the step
    reward: _Array  # float32, goals completed by the step: 0 or 1
    complete: _Array  # bool, the whole instruction is: the rollout ends here


def advance(instruction: _Array, num_goals: _Array, progress: _Array, achieved: Ragged) -> Advance:
    """The rule: the next goal of an instruction advances when the step achieved it.

    instruction [N, k, size], of which lane n asks for the first num_goals[n]; achieved has N
    rows. However many goals a step achieves, at most one advances.
    """
    lanes = np.arange(len(progress))
    wanted = instruction[lanes, np.minimum(progress, instruction.shape[1] - 1)]
    rows = ragged.rows_of(achieved)
    found = np.zeros(len(progress), np.bool_)
    found[rows[(achieved[1] == wanted[rows]).all(axis=1)]] = True
    gained = found & (progress < num_goals)
    after = progress + gained
    return Advance(after, gained.astype(np.float32), after >= num_goals)


def follow(instruction: _Array, achieved: Ragged) -> Advance:
    """What each row of a rollout would have been worth under another instruction [n, size].

    Only a row that holds the goal to be completed next can advance, so those rows are looked
    up and the rest is skipped. Row 0 is the reset: no step has achieved anything there.
    """
    offsets, goals = achieved
    reward = np.zeros(len(offsets) - 1, np.float32)
    complete = np.zeros(len(offsets) - 1, np.bool_)
    matches = (goals[:, None] == instruction).all(axis=2)  # [total, n]
    rows, after = [], int(offsets[1])
    for goal in range(len(instruction)):
        found = matches[after:, goal].nonzero()[0]
        if not len(found):
            break
        rows.append(int(offsets.searchsorted(after + found[0], side="right")) - 1)
        after = int(offsets[rows[-1] + 1])
    if rows:
        # Whether and how far each of these rows advances is for the rule to say.
        asked = instruction[None].repeat(len(rows), axis=0)
        before, count = np.arange(len(rows)), np.full(len(rows), len(instruction))
        result = advance(asked, count, before, ragged.select(achieved, np.array(rows)))
        assert (result.progress == before + 1).all()
        reward[rows] = result.reward
        complete[rows[-1] :] = result.complete[-1]
    return Advance(reward.cumsum(dtype=np.int64), reward, complete)


def pad(instructions: Iterable[_Array], max_goals: int) -> tuple[_Array, _Array]:
    """Instructions [n, size] as (instruction [N, k, size] padded with zeros, num_goals [N])."""
    rows = list(instructions)
    padded = np.zeros((len(rows), max_goals, rows[0].shape[1]), rows[0].dtype)
    for slot, instruction in zip(padded, rows, strict=True):
        slot[: len(instruction)] = instruction
    return padded, np.array([len(instruction) for instruction in rows], np.int64)
