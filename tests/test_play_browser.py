"""The playground as a person uses it: Debian's Chromium, headless, driven by Playwright.

AMAGO_SCREENSHOTS=FOLDER keeps a picture of what each test ends with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from test_play_session import untrained

pytest.importorskip("playwright", reason="no playwright; `make install` installs it")
from play_server import Server
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from amago.play.server import _Limits
from amago.play.shelf import Shelf

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium; `make chromium` installs it")
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    road = untrained(folder / "road", "package-delivery", {"env.kwargs": {"horizon": 60}})
    wind = untrained(folder / "wind", "wind", {"env.kwargs": {"horizon": 20}})
    return Shelf(["dark-key-to-door", str(road), str(wind)])


@pytest.fixture(scope="module")
def server(shelf: Shelf) -> Iterator[Server]:
    with Server(shelf) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens pages; nothing may fail on them, and nothing may come from elsewhere."""
    pages: list[Page] = []
    wrong: list[str] = []

    def visit(query: str = "", url: str = server.url, **options: Any) -> Page:
        page = browser.new_page(**{"viewport": {"width": 1360, "height": 900}, **options})
        pages.append(page)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((url, "data:")) else wrong.append(asked.url),
        )
        page.goto(url + query)
        expect(page.locator("#frame")).to_have_attribute("src", re.compile("^data:image/png"))
        return page

    yield visit
    folder = os.environ.get("AMAGO_SCREENSHOTS")
    for number, page in enumerate(pages):
        if folder and not page.is_closed():
            Path(folder).mkdir(exist_ok=True)
            page.screenshot(path=f"{folder}/{request.node.name}-{number}.png", full_page=True)
        page.close()
    assert wrong == []


def at(page: Page) -> int:
    return int(page.inner_text("#time"))


def step(page: Page, times: int = 1) -> None:
    """Press Step and wait for each step to arrive."""
    for _ in range(times):
        before = at(page)
        page.click("#step")
        expect(page.locator("#time")).to_have_text(str(before + 1))


def numbers(bars: Locator) -> list[float]:
    return [float(text.split()[0]) for text in bars.locator(".number").all_inner_texts()]


def rows(page: Page) -> int:
    return int(page.get_attribute("#strip", "data-rows") or 0)


def test_pick_a_world_run_pause_step_and_go_back(visit: Open) -> None:
    page = visit("?world=7")
    expect(page.locator("#environment")).to_have_text("DarkKeyToDoor")
    step(page, 3)
    frame = page.get_attribute("#frame", "src")
    step(page)
    page.click("#back")
    expect(page.locator("#time")).to_have_text("3")
    expect(page.locator("#frame")).to_have_attribute("src", frame or "")
    page.locator("#speed").fill("4")
    expect(page.locator("#speed-value")).to_have_text("20/s")
    page.click("#run")
    expect(page.locator("#run")).to_have_text("Pause")
    expect(page.locator("#time")).to_have_text(re.compile(r"^[2-9]\d$"))
    page.click("#run")
    expect(page.locator("#run")).to_have_text("Run")
    page.wait_for_timeout(200)
    stopped = at(page)
    page.wait_for_timeout(200)
    assert at(page) == stopped
    page.click("#next-world")
    expect(page.locator("#time")).to_have_text("0")
    assert page.input_value("#seed") == "8"
    assert page.get_attribute("#frame", "src") != frame


def test_policy_values_and_curve_are_shown_with_random_play_and_oracle(visit: Open) -> None:
    page = visit("?world=7")
    step(page, 2)
    assert sum(numbers(page.locator("#probabilities"))) == pytest.approx(1, abs=0.03)
    assert len(numbers(page.locator("#q"))) == 6
    expect(page.locator("#q .chosen")).to_have_text("γ 0.98")
    players = page.locator("#legend li")
    expect(players).to_have_count(3)
    assert [text.split()[0] for text in players.all_inner_texts()] == ["agent", "oracle", "random"]
    drawn = page.evaluate(
        "() => new Set(new Uint32Array(document.getElementById('curve').getContext('2d')"
        ".getImageData(0, 0, 600, 180).data.buffer)).size"
    )
    assert drawn > 5


def test_a_click_on_a_past_step_shows_what_was_there(visit: Open) -> None:
    page = visit("?world=7")
    first = page.get_attribute("#frame", "src")
    step(page, 5)
    assert rows(page) == 6
    page.locator("#strip").click(position={"x": 3, "y": 40})
    expect(page.locator("#past-text")).to_contain_text("Step 0 of this rollout")
    expect(page.locator("#past-frame")).to_have_attribute("src", first or "")
    page.press("#strip", "ArrowRight")
    expect(page.locator("#past-text")).to_contain_text("Step 1 of this rollout")
    page.select_option("#head", "1,1")
    expect(page.locator("#time")).to_have_text("5")
    assert rows(page) == 6


def test_experiments_on_memory(visit: Open) -> None:
    page = visit("?world=7")
    step(page, 4)
    thinks = numbers(page.locator("#q"))
    page.click("#wipe")
    expect(page.locator("#log li")).to_have_text(["step 4: its memory was wiped"])
    assert rows(page) == 1 and numbers(page.locator("#q")) != thinks
    frame = page.get_attribute("#frame", "src")
    page.click("#change")
    expect(page.locator("#log li")).to_have_count(2)
    expect(page.locator("#log li").last).to_contain_text("new key and door, same room")
    assert page.get_attribute("#frame", "src") != frame
    page.click("#transplant")
    expect(page.locator("#log li")).to_have_count(3)
    assert rows(page) == 5
    page.locator("#strip").click(position={"x": 3, "y": 40})
    expect(page.locator("#past-text")).to_contain_text("another lane's world")
    page.click("#back")
    expect(page.locator("#log li")).to_have_count(0)
    expect(page.locator("#time")).to_have_text("3")


def test_play_yourself_with_the_keyboard_and_compare(visit: Open) -> None:
    page = visit("?world=7")
    step(page, 6)
    page.get_by_text("You play").click()
    expect(page.locator("#moves")).to_be_visible()
    expect(page.locator("#time")).to_have_text("0")
    expect(page.locator("#legend li[data-player=agent]")).to_have_count(1)
    expect(page.locator("#run")).to_be_disabled()
    for index, key in enumerate(["ArrowRight", "ArrowDown", "ArrowLeft", "s"]):
        page.keyboard.press(key)
        expect(page.locator("#time")).to_have_text(str(index + 1))
    expect(page.locator("#legend li[data-player=you]")).to_have_count(1)
    expect(page.locator("#policy-title")).to_have_text("What it would do in your place")
    page.locator("#moves button").first.click()
    expect(page.locator("#time")).to_have_text("5")
    expect(page.get_by_label("in the dark")).to_be_checked()  # as it is for the agent
    dark = page.get_attribute("#frame", "src")
    page.get_by_label("in the dark").uncheck()
    expect(page.locator("#time")).to_have_text("0")
    assert page.get_attribute("#frame", "src") != dark


def test_an_instruction_is_typed_parsed_and_followed(visit: Open) -> None:
    page = visit("?agent=road&world=3")
    expect(page.locator("#asking")).to_be_visible()
    assert page.locator("#asked li").count() >= 2
    page.fill("#instruction", "eat cow")
    expect(page.locator("#parsed")).to_contain_text("expected a number in a goal, got 'eat'")
    page.click("#ask button")
    expect(page.locator("#message")).to_contain_text("expected a number in a goal")
    page.fill("#instruction", "1")
    expect(page.locator("#parsed")).to_have_text("understood: 1. 1")
    page.click("#ask button")
    expect(page.locator("#asked li")).to_have_text(["1"])
    # The person at the keyboard delivers: one step on, then whichever of the four drops is right.
    page.get_by_text("You play").click()
    expect(page.locator("#asked li")).to_have_text(["1"])
    for drop in range(4, 8):
        page.locator("#moves button").nth(0).click()
        page.locator("#moves button").nth(drop).click()
        expect(page.locator("#time")).to_have_text(str(2 * (drop - 3)))
        if page.locator("#asked .done").count():
            break
    expect(page.locator("#asked .done")).to_have_count(1)
    expect(page.locator("#message")).to_contain_text("has ended with a return of 1")


def test_continuous_actions_are_shown_and_played(visit: Open) -> None:
    page = visit("?agent=wind")
    expect(page.locator("#probabilities .number").first).to_contain_text("±")
    page.get_by_text("You play").click()
    expect(page.locator("#moves")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#time")).to_have_text("1")


def test_the_keyboard_alone_is_enough(visit: Open) -> None:
    page = visit("?world=7")
    page.locator("body").press("n")
    expect(page.locator("#time")).to_have_text("1")
    page.locator("body").press("b")
    expect(page.locator("#time")).to_have_text("0")
    page.locator("body").press(" ")
    expect(page.locator("#run")).to_have_text("Pause")
    page.locator("body").press(" ")
    reached: set[str] = set()
    page.locator("body").press("Tab")
    for _ in range(30):
        reached.add(page.evaluate("() => document.activeElement.id || document.activeElement.name"))
        page.keyboard.press("Tab")
    wanted = {"agent", "seed", "next-world", "player", "again", "run", "step", "speed", "head"}
    assert wanted | {"strip", "wipe", "change", "transplant"} <= reached
    page.focus("#wipe")
    page.keyboard.press("Enter")
    expect(page.locator("#log li")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_scrolling_sideways(visit: Open, scheme: str) -> None:
    page = visit(
        "?world=7", viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True
    )
    step(page, 2)
    widths = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    for name in ("world", "policy", "values", "adaptation", "attention", "experiments"):
        box = page.locator(f"#{name}").bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 360
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", ground)[:3])
    assert brightness > 600 if scheme == "light" else brightness < 120


def test_two_visitors_do_not_meet(visit: Open) -> None:
    one, two = visit("?world=1"), visit("?world=2")
    step(one, 3)
    step(two)
    one.click("#wipe")
    expect(one.locator("#log li")).to_have_count(1)
    assert at(two) == 1 and rows(two) == 2 and two.locator("#log li").count() == 0


def test_an_idle_session_says_so_and_begins_again(visit: Open, shelf: Shelf) -> None:
    with Server(shelf, _Limits(idle_seconds=1.5)) as server:
        page = visit("?world=7", url=server.url)
        expect(page.locator("#gone")).to_be_visible()
        expect(page.locator("#gone-text")).to_contain_text("Nothing was asked for a while")
        page.click("#reconnect")
        expect(page.locator("#gone")).to_be_hidden()
        step(page)
        page.close()


def test_another_site_cannot_open_a_session(browser: Browser, server: Server) -> None:
    page = browser.new_page()
    page.goto("data:text/html,<title>elsewhere</title>")
    opened = page.evaluate(
        """(address) => new Promise((done) => {
            const socket = new WebSocket(address);
            socket.onopen = () => done(true);
            socket.onerror = () => done(false);
        })""",
        server.url.replace("http", "ws") + "session",
    )
    page.close()
    assert opened is False
