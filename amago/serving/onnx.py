"""`amago export --onnx`: one step of an agent with its memory as inputs and outputs."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy, batch_of
from amago.rollout.driver import drive
from amago.serving.step import AgentStep, Tensors
from amago.types import Array, Timestep, VectorEnv

_MEMORY, _AFTER = "memory/", "new_memory/"
"""Before the names of the memory's inputs and of its outputs."""
_ROWS = ("prev_action", "prev_reward", "time", "first")
_GOALS = ("instruction", "num_goals", "progress")


def export_onnx(policy: AgentPolicy, example: Timestep, path: Path) -> None:
    """Write one step of a policy; `example` shows its inputs, for any number of lanes."""
    _need("onnxscript", "onnx")
    step = AgentStep(policy.agent, policy.index)
    rows, memory = _row_tensors(example), step.memory.initial(len(example))
    with torch.no_grad():
        outputs = step(rows, memory)  # also fills caches, which tracing must not do
    lanes = torch.export.Dim("lanes", min=1)
    memory_shapes = {name: {step.memory.lane_axis(name): lanes} for name in memory}
    names = [*outputs]
    with _quietly():
        program = torch.onnx.export(
            step,
            kwargs={"rows": rows, "memory": memory},
            input_names=[*rows, *(_MEMORY + name for name in memory)],
            output_names=[_AFTER + name if name in memory else name for name in names],
            dynamic_shapes={"rows": {name: {0: lanes} for name in rows}, "memory": memory_shapes},
            dynamo=True,
        )
    assert program is not None
    described = json.dumps(_described(policy.agent, policy.index, memory))
    program.model.metadata_props["amago"] = described
    path.parent.mkdir(parents=True, exist_ok=True)
    program.save(str(path))


def _row_tensors(rows: Timestep) -> Tensors:
    """The inputs of a step that are not memory, by their names."""
    batch = batch_of(rows, torch.device("cpu"))
    named = {f"obs/{key}": value for key, value in batch.obs.items()}
    fields = _ROWS if batch.instruction is None else (*_ROWS, *_GOALS)
    return named | {name: getattr(batch, name) for name in fields}


class OnnxAgent:
    """An exported agent in ONNX Runtime."""

    def __init__(self, path: str | Path) -> None:
        _need("onnxruntime", "onnx")
        import onnxruntime

        self._session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self._inputs = self._session.get_inputs()
        self.names = [output.name for output in self._session.get_outputs()]
        described = self._session.get_modelmeta().custom_metadata_map["amago"]
        self.about: dict[str, Any] = json.loads(described)

    def initial_memory(self, num_lanes: int) -> dict[str, Array]:
        """Zeros, by the names of the memory's inputs."""
        shapes = self.about["memory"]
        return {
            _MEMORY + name: np.zeros([num_lanes if n is None else n for n in shape], np.float32)
            for name, shape in shapes.items()
        }

    def step(
        self, rows: dict[str, Array], memory: dict[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """What the policy says of some rows, and the memory after them."""
        # An input that the network never reads is no input of the graph.
        known = {item.name for item in self._inputs}
        given = {name: value for name, value in {**rows, **memory}.items() if name in known}
        found = dict(zip(self.names, self._session.run(None, given), strict=True))
        after = {name: found.pop(name.replace(_MEMORY, _AFTER)) for name in memory}
        return found, after


def largest_difference(path: Path, policy: AgentPolicy, lanes: VectorEnv, steps: int) -> float:
    """How far an exported agent is from the policy, while the policy plays so many steps."""
    exported = OnnxAgent(path)
    memory = exported.initial_memory(lanes.num_lanes)
    agent, worst = policy.agent.eval(), 0.0
    state = policy.initial_state(lanes.num_lanes)
    with torch.inference_mode():
        for count, played in enumerate(drive(lanes, policy)):
            if count == steps:
                break
            rows = _row_tensors(played.rows)
            said, memory = exported.step({k: v.numpy() for k, v in rows.items()}, memory)
            batch = batch_of(played.rows, policy.device)
            hidden, state = agent.memory.step(agent.encoder(batch), batch.time, state)
            expected = _policy_outputs(agent, hidden, policy.index, batch.obs)
            for name, value in expected.items():
                worst = max(worst, float(np.abs(said[name] - value.cpu().numpy()).max()))
    return worst


def _policy_outputs(agent: Agent, hidden: torch.Tensor, index: int, obs: Tensors) -> Tensors:
    """The numbers that describe a policy, as an exported agent names them."""
    from amago.agent.agent import action_mask

    found: Any = agent.actor.at_discount(hidden, index, action_mask(obs))
    if hasattr(found, "probs"):
        return {"probabilities": found.probs}
    return {"mean": found.mean, "std": found.log_std.exp()}


def _described(agent: Agent, index: int, memory: Tensors) -> dict[str, Any]:
    step = AgentStep(agent, index).memory
    shapes = {
        name: [None if axis == step.lane_axis(name) else size for axis, size in enumerate(t.shape)]
        for name, t in memory.items()
    }
    spec = agent.spec
    return {
        "environment": spec.name,
        "action": {"kind": spec.action.kind, "size": spec.action.size},
        "discount": round(float(agent.discounts[index]), 6),
        "memory": shapes,
        "observation": {
            key: {"shape": list(item.shape), "dtype": item.dtype, "kind": item.kind}
            for key, item in spec.obs.items()
        },
    }


def _need(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ValueError(
            f"--onnx needs {module}, which is not installed: pip install 'amago[{extra}]', or in a "
            f"checkout of amago pip install -c constraints.txt -e '.[{extra}]'"
        )


@contextlib.contextmanager
def _quietly() -> Any:
    """Without what torch prints about every stage of an export."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
