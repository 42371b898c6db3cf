"""What goals may be made of: checks of words, numbers and bounds, and how they are read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]

_WHOLE = re.compile(r"[+-]?\d{1,19}")
_INT64 = np.iinfo(np.int64)


def check_words(words: tuple[str, ...]) -> None:
    """ValueError unless goals of these words can be written and read again."""
    folded = [word.casefold() for word in words]
    alike = [word for word in words if folded.count(word.casefold()) > 1]
    if len(words) < 2 or words[0] != "" or alike:
        raise ValueError(
            'expected a vocabulary of different words after the first, "", got '
            f"{alike or words[:5]}; word 0 fills short goals, and case makes no difference"
        )
    if any(not word or re.search(r"[\s,()]", word) for word in words[1:]):
        raise ValueError("expected words without blanks, commas and brackets")
    # Before a number even a lone x would be a count.
    count = r"x\d*" if any(word.isdecimal() for word in words) else r"x\d+"
    counts = [word for word in words if re.fullmatch(count, word, re.IGNORECASE)]
    if counts:
        raise ValueError(
            f'expected words that are no counts, as in "eat cow x2", got {counts}; rename them'
        )


def check_bounds(low: tuple[float, ...], high: tuple[float, ...], size: int, whole: bool) -> None:
    """ValueError unless there is a number between the bounds of each place of a goal."""
    if len(low) != size or len(high) != size:
        raise ValueError(
            f"expected {size} bounds in low and in high, one for each number of a goal, "
            f"got {low} and {high}"
        )
    if not all(least <= most for least, most in zip(low, high, strict=True)):
        raise ValueError(
            f"expected each bound in low to be at most that in high, got {low} and {high}; "
            "exchange them"
        )
    bounds = (*low, *high)
    if whole and not all(_INT64.min <= b <= _INT64.max and b == int(b) for b in bounds):
        raise ValueError(
            f"expected bounds that are whole numbers of 64 bits, got {low} and {high}; goals of "
            "other numbers are declared with whole=False"
        )


def check_fill(tokens: _Array) -> None:
    """ValueError unless every goal [n, size] has words, and the empty word only after them."""
    filled = tokens != 0
    if not (filled[:, 0].all() and (filled[:, 1:] <= filled[:, :-1]).all()):
        raise ValueError(
            "expected goals of one word or more, and 0, the empty word, only after them, got "
            f"{tokens.tolist()}; move the zeros to the end, and leave out goals without words"
        )


@lru_cache(maxsize=16)
def tokens_of(vocabulary: tuple[str, ...]) -> dict[str, int]:
    """The token of every word, whatever its case."""
    return {word.casefold(): token for token, word in enumerate(vocabulary)}


def read_number(word: str, whole: bool) -> float:
    """A number from text; a whole one exactly, and not by way of a float's 53 bits."""
    if whole and _WHOLE.fullmatch(word):
        return int(word)
    try:
        number = float(word)
    except ValueError:
        raise ValueError(f"expected a number in a goal, got {word!r}") from None
    # Among whole numbers a 3.0 would turn all of them into floats.
    return int(number) if whole and number.is_integer() and abs(number) < 2**63 else number


def whole_numbers(given: _Array) -> _Array | None:
    """Whole numbers that compare exactly with bounds, or None where some are not whole.

    As a float 2**60 would be within a bound of 2**60 - 1.
    """
    if given.dtype.kind != "f":
        return given
    valid = (given == np.rint(given)) & (given >= -(2.0**63)) & (given < 2.0**63)
    return given.astype(np.int64) if valid.all() else None
