"""The size dial: one name for the widths of all networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    width: int
    """Of the memory, and of the state that actor and critics see."""
    layers: int
    """Of the memory."""
    attention_heads: int
    encoder: tuple[int, ...]
    """Layers of the timestep encoder."""
    heads: tuple[int, ...]
    """Hidden layers of the actor and of each critic."""
    instruction: tuple[int, ...] = (64, 32)
    """Layers of the instruction encoder."""

    def settings(self) -> dict[str, Any]:
        """The settings that this size stands for, by their dotted names."""
        return {
            "encoder.hidden": self.encoder,
            "instruction.hidden": self.instruction,
            "transformer.model_dim": self.width,
            "transformer.num_heads": self.attention_heads,
            "transformer.num_layers": self.layers,
            "heads.hidden": self.heads,
        }


SIZES = {
    "tiny": Size(16, 1, 2, encoder=(16,), heads=(16,), instruction=(16,)),
    "small": Size(64, 2, 4, encoder=(64, 64), heads=(128, 128)),
    "medium": Size(128, 3, 4, encoder=(128, 128), heads=(256, 256)),
}
"""`tiny` is for tests, `small` learns in minutes on one CPU thread, `medium` on several. `paper`
is the fourth name: a domain's own column of Table 3."""
