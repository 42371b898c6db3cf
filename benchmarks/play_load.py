"""How fast the playground is: one visitor, many visitors, and a page in Chromium.

    python benchmarks/play_load.py

Starts `amago play` on a free port of this machine and asks for steps over websockets. One
visitor asks as fast as answers come. Then many visitors ask at a steady rate; a step counts as
dropped when the answer is not the next step. The server's CPU time per step does not depend on
what else the machine does. The page is interactive when its Step button has answered.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

MAX_SESSIONS, MAX_SECONDS = 64, 60
BEGIN = {"type": "begin", "player": "agent", "instruction": "", "dark": False}
LATE_SECONDS = 1.0


@contextlib.contextmanager
def server(agent: str) -> Iterator[tuple[str, int]]:
    """The address of a playground, and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "amago", "play", agent, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/agents", timeout=2).read()
                break
            time.sleep(0.2)
        yield f"127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)


def cpu_seconds(process: int) -> float:
    """What a process has used so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Visitor:
    """Asks for steps and begins the next world when one ends."""

    def __init__(self, where: str, agent: str, seed: int) -> None:
        self.where, self.agent, self.seed = where, agent, seed
        self.latencies: list[float] = []
        self.dropped = 0

    async def visit(self, seconds: float, rate: float | None) -> None:
        async with connect(f"ws://{self.where}/session", max_size=2**22) as self.socket:
            state = await self._begin()
            started = time.monotonic()
            for number in range(10**9):
                if rate is not None:
                    await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
                if time.monotonic() - started > seconds:
                    break
                state = await (self._begin() if state["ended"] else self._step(state["time"]))

    async def _begin(self) -> dict[str, Any]:
        self.seed += 1
        began = await self._ask({**BEGIN, "agent": self.agent, "seed": self.seed})
        state: dict[str, Any] = began["state"]
        return state

    async def _step(self, before: int) -> dict[str, Any]:
        asked = time.monotonic()
        state = await self._ask({"type": "step"})
        self.latencies.append(time.monotonic() - asked)
        self.dropped += state.get("time") != before + 1
        return state

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        await self.socket.send(json.dumps(request))
        reply: dict[str, Any] = json.loads(await self.socket.recv())
        return reply


async def crowd(
    where: str, agent: str, sessions: int, seconds: float, rate: float | None
) -> list[Visitor]:
    visitors = [Visitor(where, agent, 1000 * number) for number in range(sessions)]
    await asyncio.gather(*(visitor.visit(seconds, rate) for visitor in visitors))
    return visitors


def report(title: str, visitors: list[Visitor], seconds: float, cpu_seconds: float) -> None:
    latencies = sorted(latency for visitor in visitors for latency in visitor.latencies)
    steps, last = len(latencies), latencies[int(0.99 * (len(latencies) - 1))]
    print(f"{title}, {seconds:g} s:")
    print(f"  {steps} steps, {steps / seconds / len(visitors):.1f} per second and visitor")
    print(
        f"  answered in {1000 * statistics.median(latencies):.0f} ms, 99% in {1000 * last:.0f} ms"
    )
    print(f"  {sum(visitor.dropped for visitor in visitors)} dropped, ", end="")
    print(f"{sum(late > LATE_SECONDS for late in latencies)} later than {LATE_SECONDS:g} s")
    print(f"  {1000 * cpu_seconds / steps:.1f} ms of one core per step")


def page_seconds(where: str) -> list[float]:
    """From navigation to a world that is drawn and a step that is answered; empty without
    Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import expect, sync_playwright

    taken = []
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for _ in range(5):
            page = browser.new_page()
            started = time.monotonic()
            page.goto(f"http://{where}/", wait_until="commit")
            expect(page.locator("#step")).to_be_enabled(timeout=20_000)
            page.click("#step")
            expect(page.locator("#time")).to_have_text("1", timeout=20_000)
            taken.append(time.monotonic() - started)
            page.close()
        browser.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agent", default="dark-key-to-door")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--rate", type=float, default=10.0, help="steps per second and visitor")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    sessions = min(max(options.sessions, 1), MAX_SESSIONS)
    seconds = min(max(options.seconds, 1.0), MAX_SECONDS)
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with server(options.agent) as (where, process):
        before = cpu_seconds(process)
        alone = asyncio.run(crowd(where, options.agent, 1, seconds, None))
        between = cpu_seconds(process)
        report("one visitor, as fast as answers come", alone, seconds, between - before)
        many = asyncio.run(crowd(where, options.agent, sessions, seconds, options.rate))
        used = cpu_seconds(process) - between
        report(f"{sessions} visitors at {options.rate:g} steps/s each", many, seconds, used)
        pages = page_seconds(where)
        if pages:
            times = ", ".join(f"{taken:.2f}" for taken in pages)
            print(f"page interactive after {times} s (first visit first)")


if __name__ == "__main__":
    main()
