"""The count of needed operations, by hand and against torch's own counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_agent_helpers import TINY, random_batch, tiny_config, tiny_learner, tiny_spec
from torch.utils.flop_counter import FlopCounterMode

from amago.bench.flops import _Flops, update_flops
from amago.bench.plain.agent import PlainAgent
from amago.bench.plain.learner import PlainLearner
from amago.config import Config, override
from amago.types import ActionSpec, EnvSpec, ObsSpec


def _counted(work: Callable[[], Any]) -> float:
    """What torch counts: matrix products; neither matrix times vector nor fused CPU attention."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_the_count_of_one_tiny_update_by_hand() -> None:
    spec = EnvSpec("hand", {"x": ObsSpec((3,), "float32")}, ActionSpec("discrete", 2), 9)
    config = override(
        Config(),
        {
            "encoder.hidden": (5,), "transformer.model_dim": 4,
            "transformer.num_heads": 2, "transformer.num_layers": 2, "heads.hidden": (7,),
            "heads.num_critics": 3, "agent.target_critics": 2,
            "agent.discounts": (0.5, 0.9, 0.99), "agent.acting_discount": 0.9,
        },
    )  # fmt: skip
    # Rows 3 + 2 = 5, transitions 2 + 1 = 3; features 3 + 2 actions + reward + first + time = 8.
    flops = update_flops(spec, config, [3, 2])
    assert flops == _Flops(
        encoder=2 * 5 * (2 * 8 * 5),
        memory=2 * 5 * 3 * (5 * 4 + 2 * (4 * 12 + 4 * 4 + 2 * 4 * 16)),
        attention=2 * (6 + 3) * 2 * 3 * (4 + 4),
        actor=2 * 3 * 3 * (4 * 7 + 7 * 6),
        critics=2 * 3 * 3 * 3 * (4 * 7 + 7 * 6),
        targets=2 * 3 * ((4 * 7 + 7 * 6) + 2 * (4 * 7 + 7 * 6)),
    )
    assert flops.total == 800 + 12120 + 864 + 1260 + 3780 + 1260


@pytest.mark.parametrize("drawn", [1, 3])
def test_amagos_discrete_update_does_what_it_needs_and_no_more(drawn: int) -> None:
    """All but attention, which torch's counter does not see in the fused kernel."""
    learner = tiny_learner(double=False, agent__target_critics=drawn)
    batch = random_batch(learner.agent.spec, [9, 4, 7], double=False)
    config = tiny_config(agent__target_critics=drawn)
    needed = update_flops(learner.agent.spec, config, [9, 4, 7])
    counted = _counted(lambda: learner.step(batch))
    linear = needed.total - needed.attention
    assert linear <= counted * 1.001
    assert counted <= linear * 1.05


def test_the_plain_update_counts_attention_too() -> None:
    """Without padding it does what is needed, but for scores above the diagonal."""
    spec = EnvSpec("p", {"x": ObsSpec((2,), "float32")}, ActionSpec("discrete", 3), 24)
    config = override(Config(), TINY | {"agent.target_critics": 2})
    batch = random_batch(tiny_spec(), [9, 9, 9], double=False)
    batch.obs.clear()
    batch.obs["x"] = torch.randn(27, 2)
    learner = PlainLearner(PlainAgent(spec, config))
    needed = update_flops(spec, config, [9, 9, 9])
    square = needed.attention * 81 / 45
    assert _counted(lambda: learner.step(batch)) == needed.total - needed.attention + square


def test_a_continuous_update_does_what_it_needs_plus_known_extras() -> None:
    rows = [9, 9]
    learner = tiny_learner("continuous", double=False, agent__target_critics=2)
    config, spec = tiny_config(agent__target_critics=2), learner.agent.spec
    batch = random_batch(spec, rows, double=False)
    needed = update_flops(spec, config, rows)
    G, C, D = len(learner.agent.discounts), config.heads.num_critics, 16
    first, last = config.heads.hidden[0], config.heads.hidden[-1]
    transitions = sum(rows) - len(rows)
    # amago computes the output columns of all discounts where one is needed (3 products for the
    # replay's actions, 2 for the policy's, 1 per drawn target), and the state's share of the first
    # layer again for the policy's actions. The horizon is an input beside the action; its gradient
    # comes along.
    columns = (C * (3 + 2) + 2) * G * (G - 1) * last
    state = C * D * first
    horizon = C * G * first
    extras = 2 * transitions * (columns + state + horizon)
    linear = needed.total - needed.attention
    counted = _counted(lambda: learner.step(batch))
    assert linear <= counted * 1.001
    assert counted <= (linear + extras) * 1.001


def test_other_memories_and_empty_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="transformer, got 'gru'"):
        update_flops(tiny_spec(), tiny_config(memory="gru"), [4])
    with pytest.raises(ValueError, match=r"at least 2 rows \(1 transition\), got \[4, 1\]"):
        update_flops(tiny_spec(), tiny_config(), [4, 1])
