"""The demo as a person meets it: the terminal, the page in a real browser, and Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.capture import poll

PENSTOCK = Path(sys.executable).with_name("penstock")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def descendants(pid: int) -> set[int]:
    """Every process below this one, now."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended while we looked
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def gone_soon(pids: set[int], seconds: float = 20) -> set[int]:
    deadline = time.monotonic() + seconds
    while (left := {pid for pid in pids if is_running(pid)}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@pytest.fixture
def demo() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running demo in a process group of its own, and the address of its page."""
    process = subprocess.Popen(
        [PENSTOCK, "demo", "--port", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        else:
            pytest.fail("the demo ended early:\n" + "".join(lines))
        yield process, address.group()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)
        yield browser
        browser.close()


def search(page: Page, text: str) -> None:
    page.get_by_role("searchbox").fill(text)


@pytest.mark.mariadb
@pytest.mark.timeout(300)
def test_search_finds_a_product_and_a_change_made_on_the_page(
    demo: tuple[subprocess.Popen[str], str], browser: Browser
) -> None:
    process, address = demo
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    search(page, "copper kettle")
    hits = page.locator("#hits button")
    expect(hits.first).to_contain_text("copper kettle")

    hits.first.click()
    expect(page.locator("#name")).to_be_enabled()
    page.locator("#name").fill("zanzibar teapot")
    page.locator("#price").fill("77.70")
    page.get_by_role("button", name="Commit").click()
    expect(page.locator("#log li").first).to_contain_text("zanzibar teapot", timeout=30_000)
    assert re.fullmatch(r"\d+ ms", page.locator("#log li b").first.inner_text())
    search(page, "zanzibar")
    expect(hits).to_have_count(1)
    expect(hits.first).to_contain_text("77.70")

    page.locator("#price").fill("cheap")
    page.get_by_role("button", name="Commit").click()
    expect(page.get_by_role("alert")).to_contain_text("a price is a number")

    page.locator("#price").fill("5")
    page.locator("#state").select_option("hidden")
    page.get_by_role("button", name="Commit").click()
    expect(page.locator("#log li").first).to_contain_text("gone from the index", timeout=30_000)
    expect(hits).to_have_count(0)
    assert problems == []

    started = descendants(process.pid)
    assert len(started) > 3
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal: every process of the group gets it
    assert process.wait(60) == 0
    assert gone_soon(started) == set()


@pytest.mark.mariadb
@pytest.mark.timeout(300)
def test_once_prints_four_latencies_and_leaves_nothing_running() -> None:
    with subprocess.Popen([PENSTOCK, "demo", "--once"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started: set[int] = set()
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            started |= descendants(process.pid)
        assert process.wait(60) == 0, "".join(lines)
    text = "".join(lines)
    assert len(re.findall(r"\d+ ms", text)) == 4, text
    for change in ("insert", "update", "joined table", "delete"):
        assert change in text
    assert gone_soon(started) == set()


@pytest.mark.mariadb
@pytest.mark.timeout(300)
def test_a_killed_demo_leaves_nothing_running(demo: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = demo
    started = descendants(process.pid)
    process.kill()
    process.wait()
    assert gone_soon(started) == set()


@pytest.mark.mariadb
@pytest.mark.timeout(300)
@pytest.mark.parametrize("moment", ["Spark is named", "its JVM loads", "its stream starts"])
def test_ctrl_c_while_spark_starts_leaves_nothing_running(moment: str) -> None:
    command = [PENSTOCK, "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        awaited = "the first batch loads" if moment == "its stream starts" else "Spark"
        assert any(awaited in line for line in process.stdout)
        seen = descendants(process.pid)
        if moment == "its JVM loads":
            assert poll(lambda: "java" in map(name_of, descendants(process.pid)))
        os.killpg(process.pid, signal.SIGINT)
        while process.poll() is None:
            seen |= descendants(process.pid)
            time.sleep(0.05)
        process.stdout.read()
    assert process.returncode in (130, -signal.SIGINT)
    assert gone_soon(seen) == set()
