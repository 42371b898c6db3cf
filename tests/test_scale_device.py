"""What a GPU needs of an update, shown without one."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_agent_helpers import random_batch, tiny_agent, tiny_config, tiny_spec
from test_replay_helpers import same
from test_scale_helpers import CASES
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from amago.agent import device as device_module
from amago.agent.device import _allow_tf32, _worth_a_gpu, find_device, resolve_device
from amago.agent.policy import AgentPolicy
from amago.agent.share import share_batch
from amago.agent.update import Learner, _mixed_precision
from amago.config import override
from amago.nets.memory.packed import _attend_padded, _attend_varlen, _varlen_kernel, attend_packed
from amago.nets.memory.transformer import causal_mix
from amago.nets.precision import allow_bfloat16
from amago.nets.sequences import Sequences
from amago.nets.upload import _in_one_copy, upload_arrays
from amago.training.feed import uploaded
from amago.types import ObsSpec, Timestep

LENGTHS = [7, 5, 5, 2, 1]


def heads(requires_grad=False):
    torch.manual_seed(0)
    return [torch.randn(sum(LENGTHS), 2, 8, requires_grad=requires_grad) for _ in range(3)]


def reference_varlen(query, key, value, begins, _, longest, __, window_size):
    """What torch's kernel for sequences of different lengths computes, row by row."""
    assert window_size == (-1, 0) and longest == max(LENGTHS) and begins.dtype == torch.int32
    rows = []
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        for row in range(begin, end):
            scores = torch.einsum("hd,khd->hk", query[row], key[begin : row + 1]) / 8**0.5
            rows.append(torch.einsum("hk,khd->hd", scores.softmax(-1), value[begin : row + 1]))
    return torch.stack(rows)


@pytest.mark.parametrize("one_call", ["padded", "varlen"])
def test_attention_in_one_call_is_that_of_one_call_per_length(one_call):
    places = Sequences(LENGTHS)
    found = {}
    for name, mix in (
        ("per length", causal_mix(places)),
        ("padded", lambda *x: _attend_padded(places, *x)),
        ("varlen", lambda *x: _attend_varlen(reference_varlen, places, *x)),
    ):
        inputs = heads(requires_grad=True)
        mixed = mix(*inputs)
        (mixed * torch.arange(mixed.numel()).view_as(mixed).sin()).sum().backward()
        found[name] = [mixed.detach(), *(x.grad for x in inputs)]
    for got, want in zip(found[one_call], found["per length"], strict=True):
        assert torch.allclose(got, want, atol=1e-6)


def test_the_number_of_attention_calls_does_not_depend_on_the_lengths():
    def calls(lengths):
        places = Sequences(lengths, "meta")
        inputs = [torch.empty(sum(lengths), 2, 8, device="meta") for _ in range(3)]
        with Calls() as seen:
            causal_mix(places)(*inputs)
        return sum("scaled_dot_product" in name or name == "bmm" for name in seen.names)

    assert calls([5, 4, 3, 2, 1]) == calls([5, 5, 4]) <= 2


def test_the_varlen_kernel_is_torchs_own_and_for_half_precision_on_a_gpu_alone():
    kernel = _varlen_kernel()
    assert kernel is None or kernel.__module__ == "torch.nn.attention.varlen"
    places = Sequences(LENGTHS)
    assert torch.equal(attend_packed(places, *heads()), _attend_padded(places, *heads()))


class Calls(TorchDispatchMode):
    """Every operation, and the devices of all tensors that go in or out."""

    def __init__(self):
        super().__init__()
        self.names, self.devices = [], set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.names.append(func.overloadpacket.__name__)
        for item in tree_leaves((args, kwargs, out)):
            if isinstance(item, torch.Tensor) and item.dim():
                self.devices.add(str(item.device))
        return out


class MetaLearner(Learner):
    def _reads_as_finite(self, norm, loss):
        assert norm.is_meta and loss.is_meta
        return True


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_whole_update_touches_one_device_alone(name, accumulate, monkeypatch):
    case = replace(CASES[name], double=False)
    config = tiny_config(**{"terms.world_model.weight": 0.5, **case.settings})
    agent = tiny_agent(case.spec, config, double=False).to("meta")
    learner = MetaLearner(agent, config.agent, config.optim)
    # Lengths come from the CPU by nature: their copy is the only one.
    monkeypatch.setattr(
        "amago.nets.sequences.numbers_on",
        lambda device, x: torch.empty(len(x), device=device).long(),
    )
    share = share_batch(case.batch(0), accumulate=accumulate)[0].to("meta")
    with Calls() as seen:
        metrics = learner.learn(share)
    assert all(value.is_meta for value in metrics.values())
    assert seen.devices == {"meta"}, seen.devices
    assert not {"nonzero", "masked_select", "_unique2"} & {*seen.names}


class Waits(TorchFunctionMode):
    """Counts what makes the CPU wait for a device: reading numbers, and shapes that depend on
    them."""

    METHODS = ("cpu", "numpy", "tolist", "item", "__bool__", "__float__", "__int__", "__index__",
               "__array__", "nonzero", "masked_select", "unique", "equal")  # fmt: skip

    def __init__(self):
        super().__init__()
        self.seen, self._inside = [], 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        counted = not self._inside and name in self.METHODS
        if counted:
            self.seen.append(name)
        # On a CPU, but not on a GPU, one_hot checks its ids by reading them.
        self._inside += counted or name == "one_hot"
        with Reads(self) if not self._inside else _nothing():
            out = func(*args, **(kwargs or {}))
        self._inside -= counted or name == "one_hot"
        return out


class Reads(TorchDispatchMode):
    """The same, where torch does it by itself."""

    NAMES = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "equal")

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in self.NAMES:
            self.waits.seen.append(name)
        boolean_index = name == "index" and any(
            x is not None and x.dtype == torch.bool for x in args[1]
        )
        if boolean_index:
            self.waits.seen.append("index by a mask")
        return func(*args, **(kwargs or {}))


class _nothing:  # noqa: N801
    def __enter__(self): ...
    def __exit__(self, *_): ...


def test_waits_are_counted_wherever_they_come_from():
    x = torch.arange(4.0)
    for wait in (
        lambda: float(x[0]), lambda: bool(x[0] > 1), lambda: x.cpu(), lambda: x.numpy(),
        lambda: x.tolist(), lambda: x[0].item(), lambda: x.nonzero(), lambda: x[x > 1],
        lambda: torch.equal(x, x), lambda: x.unique(),
        lambda: torch.repeat_interleave(x, torch.ones(4, dtype=torch.int64)).sum().item(),
    ):  # fmt: skip
        with Waits() as waits:
            wait()
        assert len(waits.seen) >= 1
    with Waits() as waits:
        torch.nn.functional.one_hot(torch.tensor([1, 2]), 4).sum() + x[torch.tensor([1, 2])].sum()
    assert waits.seen == []


@pytest.mark.parametrize("name", CASES)
def test_an_update_waits_once_for_the_device(name):
    case = CASES[name]
    learner, batch = case.learner(), case.batch(0)
    learner.step(batch)  # fills what is cached
    for accumulate in (1, 2):
        share = share_batch(case.batch(1), accumulate=accumulate)[0]
        with Waits() as waits:
            learner.learn(share)
        assert waits.seen == ["__bool__"], waits.seen


def timestep(spec, time):
    count = len(time)
    return Timestep(
        obs={"place": np.zeros((count, 2), np.float32), "room": np.zeros(count, np.uint8)},
        prev_action=np.zeros((count, 2), np.float32)
        if spec.action.kind == "continuous"
        else np.zeros(count, np.int64),
        prev_reward=np.zeros(count, np.float32),
        time=np.array(time),
        first=np.array(time) == 0,
        terminal=np.zeros(count, bool),
        last=np.zeros(count, bool),
        world_seed=np.zeros(count, np.int64),
    )


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
@pytest.mark.parametrize("memory", ["transformer", "gru", "feedforward"])
def test_an_acting_step_waits_once_for_the_device(kind, memory):
    spec = tiny_spec(kind)
    policy = AgentPolicy(tiny_agent(spec, tiny_config(memory=memory), double=False), seed=0)
    state = policy.initial_state(3)
    for step in range(3):
        with Waits() as waits:
            _, state = policy.act(timestep(spec, [step, step, step]), state)
        if step:
            assert [name for name in waits.seen if name != "numpy"] == ["cpu"], waits.seen


def test_what_an_acting_step_is_told_goes_to_the_device_in_one_copy():
    step = timestep(tiny_spec("continuous"), [0, 3, 7])
    arrays = {
        "view": np.arange(30, dtype=np.uint8).reshape(3, 2, 5), "none": np.zeros((3, 0)),
        "wide": np.arange(6.0).reshape(2, 3).T, "first": step.first, "time": step.time,
        "place": step.obs["place"],
    }  # fmt: skip
    with Calls() as seen:
        there = upload_arrays(arrays, torch.device("meta"))
    assert seen.names.count("_to_copy") == 1
    tensors = upload_arrays(arrays, torch.device("cpu"))
    packed = _in_one_copy(tensors, torch.device("cpu"))
    for name, array in arrays.items():
        assert there[name].is_meta and there[name].shape == array.shape
        assert packed[name].dtype == there[name].dtype == tensors[name].dtype
        np.testing.assert_array_equal(packed[name].numpy(), array)


def test_an_acting_step_takes_as_many_kernels_however_long_the_lanes_are():
    spec = tiny_spec()
    memory = tiny_agent(spec, tiny_config(), double=False).memory.to("meta").eval()
    counts = []
    for lengths in ([2, 1, 1, 1], [9, 7, 5, 1], [5000, 2000, 100, 1]):
        state = memory.initial_state(4)
        state.context_length = 8192
        state.lengths = np.array(lengths)
        while state.keys.shape[3] < 8192:
            state._grow()
        x, time = torch.empty(4, 8, device="meta"), torch.empty(4, dtype=torch.int64, device="meta")
        memory.announce(state, np.zeros(4, bool))
        with torch.no_grad(), Calls() as seen:
            memory.step(x, time, state)
        assert len(state.spans) == 1
        counts.append(len(seen.names))
    assert counts[1] == counts[2] <= 100, counts  # the first step fills what is cached


PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution",
            "convolution_backward", "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_flash_attention_for_cpu_backward")  # fmt: skip


class SafeProducts(TorchDispatchMode):
    """Products of numbers rounded to bfloat16, computed in float32: this CPU has no others."""

    def __init__(self):
        super().__init__()
        self.rounded, self.exact = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name not in PRODUCTS:
            return func(*args, **(kwargs or {}))
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if not any(x.dtype == torch.bfloat16 for x in tensors):
            self.exact += 1
            return func(*args, **(kwargs or {}))
        self.rounded += 1

        def wide(x):
            low = isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16
            return x.float() if low else x

        def low(x):
            real = isinstance(x, torch.Tensor) and x.dtype == torch.float32
            # The logarithms of softmax sums stay in float32, as in the real kernel.
            keep = real and "attention" in name and x.dim() == 3
            return x.bfloat16() if real and not keep else x

        return tree_map(low, func(*tree_map(wide, args), **tree_map(wide, kwargs or {})))


@pytest.mark.parametrize("name", ["discrete", "continuous", "multi-discrete", "relabeled",
                                  "windows of one length"])  # fmt: skip
def test_mixed_precision_is_close_and_keeps_what_must_be_exact_in_float32(name, monkeypatch):
    single = replace(CASES[name], double=False)
    exact, mixed = single.learner(), single.learner()
    mixed.bfloat16 = "cpu"
    batch, seen = single.batch(0), []
    real = mixed.total_loss

    def total_loss(transitions):
        seen.append(transitions)
        return real(transitions)

    mixed.total_loss = total_loss
    torch.manual_seed(3)
    want = exact.step(batch)
    torch.manual_seed(3)
    with SafeProducts() as products:
        got = mixed.step(batch)
    assert products.rounded > 40
    transitions = seen[0]
    for value in (transitions.critic_state, transitions.target, transitions.taken.normalised,
                  transitions.expected.normalised, transitions.policy.log_prob(
                      transitions.action[:, None])):  # fmt: skip
        assert value.dtype == torch.float32
    for parameter in mixed.parameters:
        assert parameter.dtype == torch.float32
        if parameter.grad is not None:
            assert parameter.grad.dtype == torch.float32
    for average in mixed.optimizer.state.values():
        assert average["exp_avg"].dtype == average["exp_avg_sq"].dtype == torch.float32
    assert mixed.agent.popart.mean.dtype == torch.float64
    assert torch.equal(mixed.agent.encoder.normalizer.mean, exact.agent.encoder.normalizer.mean)
    difference = 0.0
    for key, value in want.items():
        assert float(got[key]) == pytest.approx(float(value), rel=0.1, abs=0.1), key
        difference += abs(float(got[key]) - float(value))
    assert difference > 1e-5, "nothing was rounded"


def test_mixed_precision_is_for_gpus_alone():
    agent = tiny_agent(tiny_spec(), tiny_config(), double=False)
    assert agent.config.run.bf16 and _mixed_precision(agent) is None
    with allow_bfloat16(None):
        assert agent.states(random_batch(tiny_spec(), [3], double=False)).dtype == torch.float32


def test_tf32_is_set_for_gpus_alone():
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    try:
        matmul.allow_tf32 = cudnn.allow_tf32 = False
        _allow_tf32(torch.device("cpu"), True)
        assert not matmul.allow_tf32 and not cudnn.allow_tf32
        _allow_tf32(torch.device("cuda"), True)
        assert matmul.allow_tf32 and cudnn.allow_tf32
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def test_auto_leaves_narrow_networks_on_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device_module, "find_device", torch.device)
    spec, narrow = tiny_spec(), tiny_config(transformer__model_dim=64)
    wide = override(narrow, {"transformer.model_dim": 128})
    assert resolve_device(narrow, spec).type == "cpu"
    assert resolve_device(wide, spec).type == "cuda"
    assert str(resolve_device(wide, spec, local_rank=1)) == "cuda:1"
    assert str(resolve_device(override(wide, {"run.device": "cpu"}), spec)) == "cpu"
    assert str(resolve_device(override(narrow, {"run.device": "cuda"}), spec)) == "cuda"
    image = {**spec.obs, "view": ObsSpec((16, 16, 3), "uint8", "image")}
    assert _worth_a_gpu(narrow, type(spec)(spec.name, image, spec.action, spec.horizon))


def test_shares_are_copied_one_ahead_of_the_update_that_needs_them(monkeypatch):
    """The order of events on a GPU, with stand-ins for its streams."""
    events, share = [], share_batch(CASES["relabeled"].batch(0), accumulate=2)[0]

    class Stream:
        def __init__(self, device=None):
            self.copied = 0

        def record_event(self):
            self.copied += 1
            return self.copied

        def wait_event(self, event):
            events.append(f"wait {event}")

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(
        torch.Tensor, "to", lambda self, *_, **kwargs: kwargs["non_blocking"] and self
    )

    def made():
        for number in range(3):
            events.append(f"copy {number + 1}")
            yield share

    for number, moved in enumerate(uploaded(made(), torch.device("cuda"))):
        events.append(f"update {number + 1}")
        assert same(moved, share)
    assert events == ["copy 1", "copy 2", "wait 1", "update 1", "copy 3", "wait 2", "update 2",
                      "wait 3", "update 3"]  # fmt: skip


def test_evaluation_and_bench_refuse_devices_that_are_not_there():
    for name in ("cuda:9", "gpu"):
        with pytest.raises(ValueError, match=f"--run.device {name} cannot be used here"):
            find_device(name)
