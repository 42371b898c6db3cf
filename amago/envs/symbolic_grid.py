"""MiniGrid: what stands in a cell are ids, not pixels, and a mission is a sequence of words."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import Space, spaces

_LARGEST_ID = 10
"""Of MiniGrid's objects; colours and states have fewer."""
_MOST_WORDS = 48
"""Of a mission; the longest ones are sequences of BabyAI's commands."""
_PIXELS = ("RGBImgObsWrapper", "RGBImgPartialObsWrapper")
_SMALLEST_PICTURE = 16
_WORD = re.compile(r"[a-z0-9]+")


class Words(Space[str]):
    """Texts of up to `most` words, all of them among `vocabulary`."""

    def __init__(self, vocabulary: tuple[str, ...], most: int = _MOST_WORDS) -> None:
        super().__init__((), np.str_)
        self.vocabulary, self.most = vocabulary, most

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        count = int(self.np_random.integers(1, self.most + 1))
        return " ".join(self.np_random.choice(self.vocabulary, count))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(words(x)) <= self.most

    def __eq__(self, other: object) -> bool:
        mine = (self.vocabulary, self.most)
        return isinstance(other, Words) and mine == (other.vocabulary, other.most)

    def __repr__(self) -> str:
        return f"Words({len(self.vocabulary)} words, at most {self.most})"


def words(text: str) -> list[str]:
    """The words of a mission, in lower case and without punctuation."""
    return _WORD.findall(text.lower())


class SymbolicGrid(gym.Wrapper[Any, Any, Any, Any]):
    """The same observations, in spaces that say what they are."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = _readable(env.observation_space, _shows_pixels(env))


def is_minigrid(env: gym.Env[Any, Any]) -> bool:
    """Whether an environment is one of MiniGrid's, within any wrappers."""
    return any(base.__name__ == "MiniGridEnv" for base in type(env.unwrapped).__mro__)


def _shows_pixels(env: gym.Env[Any, Any]) -> bool:
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if type(layer).__name__ in _PIXELS:
            return True
        layer = layer.env
    return False


def readable_space(space: Space[Any]) -> Space[Any]:
    """The same of a space alone, whose large pictures can only be taken for pixels."""
    has_mission = isinstance(space, spaces.Dict) and any(
        _is_mission(part) for part in space.values()
    )
    if not has_mission:
        return space
    shape = getattr(space.get("image"), "shape", (0,))  # type: ignore[attr-defined]
    return _readable(space, pixels=min(shape[:2]) >= _SMALLEST_PICTURE)


def _is_mission(space: Space[Any]) -> bool:
    return any(base.__name__ == "MissionSpace" for base in type(space).__mro__)


def _other_words(space: Any) -> list[str]:
    """Words of a mission of one's own: its text and all that may stand in its gaps."""
    gaps = space.ordered_placeholders or []
    texts = [
        space.mission_func(*(choices[0] for choices in gaps)),
        *(choice for choices in gaps for choice in choices),
    ]
    return sorted({word for text in texts for word in words(text)} - {*_VOCABULARY})


def _readable(space: Space[Any], pixels: bool) -> Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _readable(part, pixels) for key, part in space.items()})
    if _is_mission(space):
        return Words((*_VOCABULARY, *_other_words(space)))
    cells = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    return spaces.Box(0, _LARGEST_ID, space.shape, np.uint8) if cells and not pixels else space


_VOCABULARY = (
    "a", "after", "and", "at", "avoid", "ball", "behind", "blue", "box", "door", "end", "fetch",
    "find", "from", "front", "get", "go", "goal", "green", "grey", "hallway", "in", "key",
    "lava", "left", "matching", "must", "near", "next", "object", "of", "on", "open", "opening",
    "pick", "purple", "put", "reach", "red", "right", "room", "rooms", "square", "the", "then",
    "to", "traverse", "unlock", "up", "use", "yellow", "you", "your",
)  # fmt: skip
"""All words of the missions of MiniGrid and BabyAI, so that their spaces are equal."""
