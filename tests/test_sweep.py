from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from amago.cli.reproduce import reproduce as reproduce_verb
from amago.cli.suite import suite as suite_verb
from amago.cli.sweep import sweep as sweep_verb
from amago.cli.tune import tune as tune_verb
from amago.sweep.jobs import Command, Job, Step, amago_command, next_step, with_ablations
from amago.sweep.progress import Progress, _duration, _last_row, _seconds_left, live_table
from amago.sweep.queue import Queue
from amago.sweep.sweep import Outcome, parse_overrides, plan, record_command, run_jobs

CHILD = """
import json, os, pathlib, signal, sys, time
run_dir, step, behaviour, journal = pathlib.Path(sys.argv[1]), *sys.argv[2:]
def note(event):
    with open(journal, "a") as file:
        file.write(json.dumps([event, run_dir.name, step, os.environ["OMP_NUM_THREADS"]]) + "\\n")
def write(name, value):
    path = run_dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
if behaviour == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
note("start")
write("config.json", {"config": {"run": {"epochs": 4}}})
write("metrics.jsonl", {"epoch": 1, "rollout/return_mean": 0.5})
if behaviour == "early-crash":
    sys.exit("no luck before the checkpoint")
write("checkpoints/latest.json", {"epoch": 1})
if behaviour == "crash":
    sys.exit("the loss is not a number")
if behaviour == "no-result":
    sys.exit(0)
time.sleep(60 if behaviour in ("slow", "stubborn") else 0.3)
write("result.json", {})
note("end")
"""


class Bench:
    """A sweep folder with fake children, whose behaviour per seed a test sets."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "sweep"
        self.child = folder / "child.py"
        self.child.write_text(CHILD)
        self.journal = folder / "journal.jsonl"
        self.behaviour: dict[int, str] = {}
        self.output = ""

    def jobs(self, count: int) -> list[Job]:
        return plan(["t-maze"], range(count), [], self.root)

    def command(self, job: Job, step: Step) -> list[str]:
        behaviour = self.behaviour.get(job.seed, "ok")
        script = [sys.executable, "-S", str(self.child), str(job.run_dir), step]
        return [*script, behaviour, str(self.journal)]

    def run(self, count: int, num_parallel: int = 2, command: Command | None = None) -> Outcome:
        with open(os.devnull, "w") as nowhere:
            console = Console(file=nowhere, record=True, width=200)
            outcome = run_jobs(
                self.jobs(count), num_parallel, self.root, command=command or self.command,
                console=console, poll_seconds=0.02, grace_seconds=5.0,
            )  # fmt: skip
            self.output = console.export_text()
        return outcome

    def events(self) -> list[list[str]]:
        lines = self.journal.read_text().splitlines() if self.journal.is_file() else []
        return [json.loads(line) for line in lines]

    def started(self) -> list[tuple[str, str]]:
        return [(name, step) for event, name, step, _ in self.events() if event == "start"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_no_run_is_left_behind_when_nobody_reads_the_output_any_more(bench: Bench) -> None:
    """As in `amago sweep … | head -1`: rich ends the process at its next line."""
    bench.behaviour = {0: "slow"}
    children: list[int] = []

    class Unheard(Console):
        def print(self, *_: object, **__: object) -> None:
            if children:
                raise SystemExit(1)

    def feed(queue: Queue) -> bool:
        if bench.started():
            children.extend(child.pid for child in queue.children.values())
            queue.console.print("a line more")
        return False

    with open(os.devnull, "w") as nowhere, pytest.raises(SystemExit):
        run_jobs(
            bench.jobs(1), 1, bench.root, command=bench.command, feed=feed,
            console=Unheard(file=nowhere), poll_seconds=0.02, grace_seconds=5.0,
        )  # fmt: skip
    (child,) = children
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_plan_names_folders_after_preset_settings_and_seed() -> None:
    jobs = plan(["t-maze/paper", "wind"], [0, 7], ["optim.learning-rate=1e-3", "memory=gru"], "r")
    assert [str(job.run_dir) for job in jobs] == [
        "r/t-maze-paper__memory=gru__optim.learning_rate=1e-3/seed-0",
        "r/wind__memory=gru__optim.learning_rate=1e-3/seed-0",
        "r/t-maze-paper__memory=gru__optim.learning_rate=1e-3/seed-7",
        "r/wind__memory=gru__optim.learning_rate=1e-3/seed-7",
    ]
    assert jobs[0].log == Path("r/t-maze-paper__memory=gru__optim.learning_rate=1e-3/seed-0.log")


def test_many_settings_give_a_short_folder_of_their_own() -> None:
    many = [f"stage.setting_{index}=1" for index in range(20)]
    (first,), (second,) = (plan(["wind"], [0], [*many, f"z={last}"], "r") for last in (1, 2))
    assert first.run_dir != second.run_dir
    assert len(first.run_dir.parent.name) <= 180


def test_a_seed_given_twice_is_one_run() -> None:
    assert len(plan(["wind"], [1, 1, 2], [], "r")) == 2


@pytest.mark.parametrize("bad", ["memory", "=gru", "memory=", ""])
def test_an_override_without_key_or_value_is_an_error(bad: str) -> None:
    with pytest.raises(ValueError, match="key=value"):
        parse_overrides([bad])


def test_an_override_given_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse_overrides(["memory=gru", "memory=feedforward"])


def test_a_plan_without_seeds_is_an_error() -> None:
    with pytest.raises(ValueError, match="one seed"):
        plan(["wind"], [], [], "r")


def test_a_plan_with_a_negative_seed_is_an_error_before_any_run() -> None:
    with pytest.raises(ValueError, match=r"0 or more, got -1; correct --seeds"):
        plan(["wind"], [0, -1], [], "r")


def test_the_command_line_of_a_start_and_of_a_resume() -> None:
    overrides = ["memory=gru", "optim.learning_rate=1e-3", "agent.greedy=true",
                 "agent.discounts=0.9 0.99", "heads.popart=false"]  # fmt: skip
    (job,) = plan(["wind"], [3], overrides, "r")
    assert amago_command(job, "start") == [
        sys.executable, "-m", "amago", "train", "wind", "--seed", "3",
        "--run-dir", str(job.run_dir), "--threads", "1",
        "--memory", "gru", "--optim.learning-rate", "1e-3", "--agent.greedy", "True",
        "--agent.discounts", "0.9", "0.99", "--heads.popart", "False",
    ]  # fmt: skip
    resume = [sys.executable, "-m", "amago", "resume", str(job.run_dir)]
    assert amago_command(job, "resume") == resume


def test_all_jobs_run_on_one_thread_and_never_more_at_once_than_allowed(bench: Bench) -> None:
    outcome = bench.run(5, num_parallel=2)
    assert len(outcome.done) == 5 and outcome.exit_code == 0
    running = most = 0
    for event, *_ in bench.events():
        running += 1 if event == "start" else -1
        most = max(most, running)
    assert most == 2
    assert {threads for *_, threads in bench.events()} == {"1"}


def test_complete_runs_are_skipped(bench: Bench) -> None:
    bench.run(2)
    outcome = bench.run(3)
    assert [job.seed for job in outcome.skipped] == [0, 1]
    assert [job.seed for job in outcome.done] == [2]
    assert len(bench.started()) == 3


def test_a_failed_run_stops_no_other_and_shows_the_end_of_its_log(bench: Bench) -> None:
    bench.behaviour = {0: "crash"}
    outcome = bench.run(3, num_parallel=1)
    assert [job.seed for job in outcome.failed] == [0] and outcome.exit_code == 1
    assert [job.seed for job in outcome.done] == [1, 2]
    assert "the loss is not a number" in bench.output and "tries the failed" in bench.output


def test_a_further_start_resumes_a_failed_run_from_its_checkpoint(bench: Bench) -> None:
    bench.behaviour = {0: "crash"}
    bench.run(1)
    bench.behaviour = {}
    outcome = bench.run(1)
    assert outcome.exit_code == 0
    assert bench.started() == [("seed-0", "start"), ("seed-0", "resume")]
    assert bench.jobs(1)[0].log.read_text().count("$ ") == 2


def test_a_run_that_failed_before_its_first_checkpoint_is_taken_up_and_nothing_is_deleted(
    bench: Bench,
) -> None:
    bench.behaviour = {0: "early-crash"}
    bench.run(1)
    leftover = bench.jobs(1)[0].run_dir / "leftover"
    leftover.write_text("of the first try")
    bench.behaviour = {}
    bench.run(1)
    assert bench.started() == [("seed-0", "start"), ("seed-0", "resume")]
    assert leftover.exists()


def test_a_resumed_run_keeps_its_folder(bench: Bench) -> None:
    bench.behaviour = {0: "crash"}
    bench.run(1)
    kept = bench.jobs(1)[0].run_dir / "replay"
    kept.mkdir()
    bench.behaviour = {}
    bench.run(1)
    assert kept.is_dir()


def test_a_run_that_ends_well_without_a_result_has_failed(bench: Bench) -> None:
    bench.behaviour = {0: "no-result"}
    outcome = bench.run(1)
    assert outcome.exit_code == 1 and "no result.json" in bench.output


def test_a_command_that_cannot_start_is_a_failed_run(bench: Bench) -> None:
    outcome = bench.run(1, command=lambda job, step: ["/no/such/program"])
    assert outcome.exit_code == 1 and "/no/such/program" in bench.output


def test_a_run_is_complete_with_the_control_that_it_asks_for(bench: Bench) -> None:
    (job,) = bench.jobs(1)
    job.run_dir.mkdir(parents=True)

    def write(name: str, value: object) -> None:
        (job.run_dir / name).write_text(json.dumps(value))

    write("config.json", {"config": {"run": {"control": True}}})
    write("result.json", {"reference_scores": {"random": {}}})
    assert next_step(job) == "resume"
    write("result.json", {"reference_scores": {"random": {}, "no memory": {}}})
    assert next_step(job) == "skip"
    write("result.json", {"reference_scores": {"random": {}}})
    write("config.json", {"config": {"run": {"control": False}}})
    assert next_step(job) == "skip"
    # Baselines have no control, whatever their settings say.
    write("config.json", {"config": {"run": {"control": True}}, "baseline": {"method": "ppo"}})
    assert next_step(job) == "skip"


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_sweep import Bench
from amago.sweep.sweep import run_jobs
bench = Bench(Path(sys.argv[2]))
bench.behaviour = dict.fromkeys(range(3), sys.argv[3])
grace = float(sys.argv[4])
outcome = run_jobs(bench.jobs(3), 2, bench.root, command=bench.command, poll_seconds=0.02,
                   grace_seconds=grace)
sys.exit(outcome.exit_code)
"""


def _drive(bench: Bench, behaviour: str, grace: float = 5.0) -> subprocess.Popen[str]:
    """A sweep of three in a process of its own, once its first two children have a checkpoint."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(Path(__file__).parent), str(bench.root.parent),
         behaviour, str(grace)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    _wait_for(lambda: [next_step(job) for job in bench.jobs(2)] == ["resume"] * 2)
    return driver


def _lock_is_free(root: Path) -> bool:
    """Children hold the lock too: once it is free, none of them lives."""
    try:
        run_jobs([], 1, root, console=Console(quiet=True))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_children_and_leaves_a_sweep_that_goes_on(
    bench: Bench, number: signal.Signals
) -> None:
    driver = _drive(bench, "slow")
    driver.send_signal(number)
    output, _ = driver.communicate(timeout=10)
    assert driver.returncode == 128 + number
    assert "the same command goes on" in output
    assert _lock_is_free(bench.root)
    outcome = bench.run(3)
    assert len(outcome.done) == 3
    assert sorted(bench.started()[2:]) == [
        ("seed-0", "resume"), ("seed-1", "resume"), ("seed-2", "start"),
    ]  # fmt: skip


def test_children_that_ignore_the_request_to_end_are_killed(bench: Bench) -> None:
    driver = _drive(bench, "stubborn", grace=0.2)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=10)
    assert driver.returncode == 130
    assert _lock_is_free(bench.root)


def test_a_second_sweep_waits_even_for_the_children_of_a_killed_one(bench: Bench) -> None:
    driver = _drive(bench, "slow")
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(driver.pid)], capture_output=True, text=True
    ).stdout.split()
    assert len(children) == 2
    try:
        with pytest.raises(ValueError, match="another folder"):
            bench.run(3)
        driver.kill()
        driver.communicate(timeout=10)
        with pytest.raises(ValueError, match=str(driver.pid)):
            bench.run(3)
    finally:
        for child in children:
            os.kill(int(child), signal.SIGKILL)
    _wait_for(lambda: _lock_is_free(bench.root))


def test_the_command_is_recorded_once(tmp_path: Path) -> None:
    for arguments in (
        ["amago", "sweep", "a b"],
        ["amago", "sweep", "wind"],
        ["amago", "sweep", "a b"],
    ):
        record_command(tmp_path / "new", arguments)
    assert (tmp_path / "new/command.txt").read_text() == "amago sweep 'a b'\namago sweep wind\n"


def test_no_parallel_jobs_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--jobs must be at least 1"):
        run_jobs([], 0, tmp_path)


def test_the_last_whole_row_of_a_growing_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert _last_row(path) == {}
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    assert _last_row(path) == {"epoch": 2}


def test_the_time_to_go_counts_running_and_queued_runs(tmp_path: Path) -> None:
    first, second, third = (Progress(job) for job in plan(["wind"], range(3), [], tmp_path))
    assert _seconds_left([first, second, third], 2, now=10.0) is None
    first.state, first.epochs, first.epoch = "running", 10, 5
    second.state = "running"
    # 2 s per epoch: 10 s are left of the first, 20 s each for the others, on two places.
    assert _seconds_left([first, second, third], 2, now=10.0) == 25.0
    # A resumed run's pace is that of this session: 5 epochs of 10 s came before.
    first.first_epoch = 4
    assert _seconds_left([first], 1, now=10.0) == 50.0
    assert [_duration(seconds) for seconds in (12, 600, 11100)] == ["12 s", "10 min", "3 h 05 min"]


def test_the_live_table_shows_epoch_and_return_of_what_runs(bench: Bench) -> None:
    bench.behaviour = {0: "crash"}
    bench.run(1)
    item = Progress(bench.jobs(1)[0])
    item.start()
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(live_table([item], 1, time.monotonic()))
    text = console.export_text()
    assert "1 of 4" in text and "0.500" in text and "1 running" in text


def test_ablations_name_the_folder_and_reach_every_run(tmp_path: Path) -> None:
    changes = with_ablations(["run.epochs=3"], ["no-memory", "no-relabeling"])
    (job,) = plan(["maze-runner"], [0], changes, tmp_path)
    assert job.run_dir.parent.name == ("maze-runner__ablate=no-memory-no-relabeling__run.epochs=3")
    command = amago_command(job, "start")
    at = command.index("--ablate")
    assert command[at : at + 3] == ["--ablate", "no-memory", "no-relabeling"]
    assert with_ablations(["memory=gru"], []) == ["memory=gru"]


class _Queued(Exception):  # noqa: N818
    """Carries what a verb asks of the queue."""


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        (sweep_verb, ["wind", "--seeds", "0"]),
        (suite_verb, ["popgym", "--ids", "RepeatPreviousEasy"]),
        (tune_verb, ["wind", "--over", "optim.grad-clip=1..2"]),
        (reproduce_verb, ["wind"]),
    ],
)
def test_every_verb_with_a_queue_hands_devices_out(
    verb: Callable[[list[str]], int], arguments: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def run_jobs(*_: object, **options: object) -> None:
        raise _Queued(options["devices"])

    monkeypatch.setattr("amago.sweep.sweep.run_jobs", run_jobs)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(_Queued) as asked:
        verb([*arguments, "--devices", "1", "3", "--root", str(tmp_path / "runs")])
    assert asked.value.args == (("1", "3"),)


def test_devices_are_handed_out_to_the_least_used_of_them(bench: Bench) -> None:
    seen = bench.root / "seen"

    def command(job: Job, step: Step) -> list[str]:
        script = (
            f"echo $CUDA_VISIBLE_DEVICES >> {seen}; exec {shlex.join(bench.command(job, step))}"
        )
        return ["sh", "-c", script]

    with open(os.devnull, "w") as nowhere:
        outcome = run_jobs(
            bench.jobs(4), 2, bench.root, command=command, console=Console(file=nowhere),
            poll_seconds=0.02, grace_seconds=5.0, devices=("4", "7"),
        )  # fmt: skip
    assert outcome.exit_code == 0
    assert sorted(seen.read_text().split()) == ["4", "4", "7", "7"]
