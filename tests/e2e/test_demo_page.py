"""The demo's page in a real browser: every kind of change, the numbers of the picture, names that look like markup."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.support.capture import poll
from tests.support.demo_process import descendants, gone_soon, press_ctrl_c, running_demo

pytestmark = [pytest.mark.mariadb, pytest.mark.timeout(300)]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MARKUP = "<img src=x onerror=alert(1)>"
SLOW_MS = 30_000
# Records the picture's class, and the first values of two stations, whenever it begins to flow or stops.
RECORD_RATES = """() => {
    window.recorded = [];
    const picture = document.getElementById("picture"), stations = picture.querySelectorAll(".station");
    const record = () => window.recorded.push([
        picture.getAttribute("class"), ...[3, 4].map(place => stations[place].querySelector(".value").textContent)]);
    new MutationObserver(record).observe(picture, {attributeFilter: ["class"]});
}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a demo that all tests of this file share; Ctrl-C then ends it, and all that it has started."""
    with running_demo() as (process, address):
        yield address
        started = descendants(process.pid)
        assert len(started) > 3
        press_ctrl_c(process)
        assert process.wait(60) == 0
        assert gone_soon(started) == set()


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(address: str, browser: Browser) -> Iterator[Page]:
    """The page in a wide window; an error of its scripts, a dialog or a request to elsewhere fails the test."""
    page = browser.new_page(viewport={"width": 1360, "height": 900})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on(
        "request", lambda request: None if request.url.startswith((address, "data:")) else problems.append(request.url)
    )
    page.goto(address)
    expect(page.locator("#hits button").first).to_be_visible()
    yield page
    page.close()
    assert problems == []


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def seen_change(page: Page, text: str) -> int:
    """Wait until a change is listed with its milliseconds; gives how many documents it touched."""
    entry = page.locator("#log li").first
    expect(page.locator("#order")).to_be_enabled(timeout=SLOW_MS)
    expect(entry).to_contain_text(text, timeout=SLOW_MS)
    assert re.fullmatch(r"[\d,]+ ms", entry.locator("b").inner_text())
    (documents,) = re.findall(r"([\d,]+) documents?$", entry.inner_text())
    expect(page.locator("#order")).to_be_enabled()
    return int(documents.replace(",", ""))


def make_order(page: Page) -> str:
    """Make a new order, which is chosen then; gives its number."""
    press(page, "New order")
    assert seen_change(page, "is new") == 1
    title = page.locator("#order-title")
    expect(title).to_contain_text("Order A-")
    (number,) = re.findall(r"A-\d+", title.inner_text())
    return number


def search(page: Page, text: str) -> Locator:
    """Search for orders; gives the hits."""
    page.get_by_role("searchbox").fill(text)
    return page.locator("#hits button")


def number_of(page: Page, station: str, label: str) -> float:
    """Give a number of the picture."""
    title = page.locator(".title", has_text=re.compile(f"^{station}$"))
    texts = page.locator("#picture .station", has=title).locator("text").all_text_contents()
    return float(re.sub(r"[^\d.]", "", texts[texts.index(label) + 1]) or "nan")


def fill_dialog(page: Page, **values: str) -> None:
    for name, value in values.items():
        page.locator(f"#{name}").fill(value)
    press(page, "Commit")


def test_changes_of_an_order_are_found_with_their_milliseconds(page: Page) -> None:
    number = make_order(page)
    hit = search(page, number)
    expect(hit).to_have_count(1)

    lines = " ".join(page.locator("#order .items .name").all_inner_texts())
    product = next(name for name in page.locator("#product option").all_inner_texts() if name not in lines)
    page.locator("#product").select_option(label=product)
    page.locator("#quantity").fill("123")
    press(page, "Add line")
    assert seen_change(page, f"order {number} has 123 × {product}") == 1
    expect(search(page, "lines.quantity:123")).to_have_count(1)
    expect(hit).to_contain_text(f"123 × {product}")
    page.locator("#quantity").fill("many")
    press(page, "Add line")
    expect(page.locator("#message")).to_have_text("a quantity is a whole number from 1 to 999")

    remove = page.get_by_role("button", name=f"Remove the line with {product}", exact=True)
    remove.click()
    assert seen_change(page, f"order {number} is without {product}") == 1
    expect(remove).to_have_count(0)
    expect(search(page, "lines.quantity:123")).to_have_count(0)

    tag = page.locator("#tag option:checked").inner_text()
    press(page, "Put on tag")
    assert seen_change(page, f"order {number} has the tag {tag}") == 1
    expect(search(page, f'{number} tags.name:"{tag}"')).to_have_count(1)
    press(page, f"Take off the tag {tag}")
    assert seen_change(page, f"order {number} is without the tag {tag}") == 1
    expect(hit).to_have_count(0)

    page.locator("#state").select_option("draft")
    assert seen_change(page, f"order {number} is a draft") == 1
    expect(search(page, number)).to_have_count(0)
    page.locator("#state").select_option("paid")
    assert seen_change(page, f"order {number} is paid") == 1
    expect(hit).to_have_count(1)
    press(page, "Delete this order")
    assert seen_change(page, f"order {number} is deleted") == 1
    expect(hit).to_have_count(0)


def test_a_change_of_what_orders_share_touches_all_of_them(page: Page) -> None:
    number = make_order(page)
    change = page.get_by_role("button", name=re.compile("^Change the product")).first
    change.click()
    fill_dialog(page, name="zanzibar teapot", price="cheap")
    expect(page.locator("#dialog-problem")).to_contain_text("A price is a number")
    (promised,) = re.findall(r"[\d,]+", page.locator("#dialog-note").inner_text())
    fill_dialog(page, price="77.70")
    assert seen_change(page, "is now zanzibar teapot and costs 77.70") == int(promised) >= 1
    hits = search(page, "zanzibar")
    expect(hits).to_have_count(min(int(promised), 20))
    expect(search(page, f"{number} lines.product.price:77.7")).to_have_count(1)

    page.get_by_role("button", name=re.compile("^Rename the tag")).first.click()
    (promised,) = re.findall(r"[\d,]+", page.locator("#dialog-note").inner_text())
    fill_dialog(page, name="quetzal")
    assert seen_change(page, "is now quetzal") == int(promised) > 20
    search(page, "quetzal")
    expect(page.locator("#count")).to_contain_text("the first 20 hits")
    expect(hits.last.locator(".tags")).to_contain_text("quetzal")


def test_the_picture_has_numbers_that_move(page: Page) -> None:
    expect(page.locator("#count")).to_contain_text("orders")
    (documents,) = map(int, re.findall(r"of (\d+) orders", page.locator("#count").inner_text().replace(",", "")))
    assert poll(lambda: number_of(page, "Index", "documents") == documents)
    so_far, position = number_of(page, "Documents", "so far"), number_of(page, "Capture", "position")
    make_order(page)
    assert poll(lambda: number_of(page, "Index", "documents") == documents + 1)
    press(page, "Raise all prices by 1 %")
    touched = seen_change(page, "products cost 1 % more")
    assert touched == documents + 1
    assert poll(lambda: number_of(page, "Documents", "so far") > so_far + touched)
    assert poll(lambda: number_of(page, "Capture", "position") == number_of(page, "Spark", "position") > position)
    assert number_of(page, "MariaDB log", "transactions") > 2
    assert number_of(page, "Spark", "batch") > 0
    assert number_of(page, "Index", "dead letters") == 0
    assert poll(lambda: number_of(page, "Index", "lag") == 0)


def test_the_rates_of_the_picture_rise_and_fall(page: Page) -> None:
    # What other tests changed may still flow: a picture that flows from the start would not begin to.
    expect(page.locator("#picture .value").first).not_to_have_text("–")
    expect(page.locator("#picture")).not_to_have_class("flowing")
    page.evaluate(RECORD_RATES)
    press(page, "Raise all prices by 1 %")
    seen_change(page, "products cost 1 % more")
    recorded: list[list[str]] = []

    def has_flowed() -> bool:
        recorded[:] = page.evaluate("window.recorded")
        return [state for state, *_ in recorded][-2:] == ["flowing", ""]

    assert poll(has_flowed), recorded
    (_, changes_per_s, documents_per_s), (_, *rates) = recorded[-2:]
    assert float(changes_per_s.replace(",", "")) > 0
    assert float(documents_per_s.replace(",", "")) > 0
    assert rates == ["0", "0"]


def test_a_name_that_looks_like_markup_is_shown_as_text(page: Page) -> None:
    number = make_order(page)
    page.get_by_role("button", name=re.compile("^Change the product")).first.click()
    fill_dialog(page, name=f"{MARKUP} markup")
    seen_change(page, f"is now {MARKUP} markup")
    page.get_by_role("button", name=re.compile("^Rename the tag")).first.click()
    fill_dialog(page, name=MARKUP)
    seen_change(page, f"is now {MARKUP}")
    hit = search(page, f"{number} markup")
    expect(hit).to_have_count(1)
    expect(hit.locator(".lines")).to_contain_text(f"1 × {MARKUP} markup")
    expect(hit.locator(".tag", has_text=MARKUP)).to_have_count(1)
    press(page, f"Change the product {MARKUP} markup")
    expect(page.locator("#dialog-title")).to_have_text(f"Change {MARKUP} markup")
    assert page.locator("img").count() == 0


def test_an_order_can_be_changed_with_the_keyboard_in_a_narrow_window(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    number = make_order(page)
    expect(search(page, number)).to_have_count(1)
    searchbox = page.get_by_role("searchbox")
    searchbox.focus()
    hit = page.locator("#hits button")
    for _ in range(6):
        page.keyboard.press("Tab")
        if hit.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("#order-title")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#state")).to_be_focused()
    page.keyboard.type("s")  # as a list is chosen from by its first letter
    seen_change(page, f"order {number} is shipped")
    expect(page.locator("#state")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_what_is_not_a_change_is_refused_in_words(page: Page, address: str) -> None:
    def post(**options: object) -> tuple[int, str]:
        answer = page.request.post(f"{address}/api/change", **options)  # pyright: ignore[reportArgumentType]
        return answer.status, answer.json()["error"]

    assert post(form={"kind": "new_order"}) == (415, "send JSON")
    assert post(data={"kind": "rename_tag", "tag": 1, "name": " "}) == (400, "a name has 1 to 80 characters")
    assert post(data={"kind": "delete_order", "order": 4_000_000}) == (404, "there is no order 4000000 any more")
    assert page.request.get(f"{address}/api/order/4000000").status == 404


def test_damage_to_the_index_is_found_and_repaired(page: Page) -> None:
    verdict, differences = page.locator("#verdict"), page.locator("#differences li")
    press(page, "Verify")
    expect(verdict).to_have_text(re.compile(r"^equal: [\d,]+ documents$"), timeout=SLOW_MS)
    expect(differences).to_have_count(0)
    press(page, "Damage the index")
    expect(verdict).to_contain_text("A-nobody was added", timeout=SLOW_MS)
    expect(search(page, "A-nobody")).to_have_count(1)
    press(page, "Verify")
    expect(verdict).to_have_text("not equal: 1 missing, 1 stale, 1 extra", timeout=SLOW_MS)
    expect(differences).to_have_count(3)
    expect(differences.filter(has_text="stale")).to_contain_text('the index has "lost"')
    press(page, "Repair")
    expect(verdict).to_have_text("3 documents repaired: 1 missing, 1 stale, 1 extra", timeout=SLOW_MS)
    press(page, "Verify")
    expect(verdict).to_have_text(re.compile(r"^equal: [\d,]+ documents$"), timeout=SLOW_MS)
    expect(search(page, "A-nobody")).to_have_count(0)
