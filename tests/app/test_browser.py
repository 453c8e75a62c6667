"""The page in a real browser: the way from a file to a report, every page at two widths, and by keyboard alone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise

import pytest

from app.conftest import HOSTILE, table_text

selenium = pytest.importorskip("selenium", reason="selenium is not installed (it is in the dev extra)")
from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="no browser: install Debian's chromium and chromium-driver (`make browser`)",
    ),
    # Sockets of the driver are closed by the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PATIENCE_S = 90  # on a busy computer; a step usually takes a second
WIDE, NARROW = 1400, 400


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """The link that the command prints."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "patients.csv").write_text(table_text(), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "zeronorm.cli._main",
        "app",
        "--no-browser",
        "--folder",
        str(folder / "work"),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    found = re.search(r"http\S+", process.stdout.readline())
    yield found[0], folder / "patients.csv"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    process.stdout.close()


@pytest.fixture(scope="module")
def browser(link):
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    driver.get(link[0])
    yield driver
    driver.quit()


def resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def until(browser, condition):
    return WebDriverWait(browser, PATIENCE_S, 0.1).until(condition)


def find(browser, selector):
    return until(browser, lambda page: page.find_element(By.CSS_SELECTOR, selector))


def text_in(browser, selector, text):
    until(browser, lambda page: text in page.find_element(By.CSS_SELECTOR, selector).text)


def check_page(browser):
    """Nothing is wider than the page, every field has a label, headings are in order, and no error was printed."""
    for width in (WIDE, NARROW):
        resize(browser, width)
        assert not browser.execute_script("return document.documentElement.scrollWidth > innerWidth")
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea, progress, iframe, button')]"
        ".filter(e => !e.hidden && !(e.labels && e.labels.length) && !e.ariaLabel && !e.title && !e.textContent.trim()"
        " && !e.hasAttribute('aria-labelledby')).map(e => e.outerHTML)"
    )
    assert unnamed == []
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    duplicated = browser.execute_script(
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
        "return ids.filter((id, i) => ids.indexOf(id) !== i)"
    )
    assert duplicated == []
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_from_a_file_to_a_report(browser, link):
    """In a narrow window, where most can hide what is to be used."""
    address, file = link
    resize(browser, NARROW)
    browser.get(address)
    assert "token" not in browser.current_url
    check_page(browser)
    find(browser, "#file").send_keys(str(file))
    until(browser, lambda page: "/tables/" in page.current_url)
    find(browser, "#columns-table")
    check_page(browser)
    assert HOSTILE in find(browser, "#columns-table").text
    assert "1 suspicious cell" in find(browser, "#columns-table").text
    # A use that is clicked in the list of columns is in its field.
    Select(find(browser, "select[data-column=state]")).select_by_visible_text("Outcome")
    Select(find(browser, "select[data-column=d]")).select_by_visible_text("Leave out")
    assert find(browser, "#field-target").get_property("value") == "state"
    assert find(browser, "#field-ignore").get_property("value") == "d"
    text_in(browser, "#plan", "36 samples with 4 features are used to predict state")
    Select(find(browser, "#field-method")).select_by_value("fisher")
    features = find(browser, "#field-features")
    features.clear()
    features.send_keys("2")
    text_in(browser, "#plan", "2 of them")
    check_page(browser)
    browser.execute_script("arguments[0].click()", find(browser, "#start"))
    until(browser, lambda page: "/runs/" in page.current_url)
    find(browser, "[data-state=starting], [data-state=running], [data-state=finished]")
    find(browser, "[data-state=finished]")
    assert "2 of 4 features" in find(browser, "h1").text
    check_page(browser)
    browser.switch_to.frame(find(browser, "#report"))
    assert "2 of 4 features" in find(browser, "h1").text
    assert browser.execute_script("return origin") == "null"  # the sandbox keeps it from our pages
    browser.switch_to.default_content()
    Select(find(browser, "#new-table")).select_by_index(1)
    browser.execute_script("arguments[0].click()", find(browser, "#apply button"))
    until(browser, lambda page: "predicted" in page.current_url)
    text_in(browser, "h1", "36 predictions of state")
    check_page(browser)


def test_by_keyboard_alone(browser, link):
    """From the first page to the files of a result with Tab, Enter, Space and letters."""
    resize(browser, WIDE)
    browser.get(link[0])
    summary = tab_to(browser, lambda e: e.text == "Data sets to try it with")
    if not browser.execute_script("return arguments[0].parentElement.open", summary):
        summary.send_keys(Keys.SPACE)  # closed as soon as there are tables of one's own
    tab_to(browser, lambda e: e.text == "iris").send_keys(Keys.ENTER)
    until(browser, lambda page: "/tables/" in page.current_url)
    assert find(browser, "#field-target").get_property("value") == "species"
    text_in(browser, "#plan", "150 samples")
    tab_to(browser, lambda e: e.get_attribute("id") == "field-method").send_keys("fisher")
    tab_to(browser, lambda e: e.get_attribute("id") == "field-features").send_keys(
        Keys.HOME, Keys.SHIFT + Keys.END
    )
    browser.switch_to.active_element.send_keys("1")
    text_in(browser, "#plan", "1 of them")
    tab_to(browser, lambda e: e.get_attribute("id") == "start").send_keys(Keys.SPACE)
    until(browser, lambda page: "/runs/" in page.current_url)
    find(browser, "[data-state=finished]")
    tab_to(browser, lambda e: e.text == "Download everything")


def tab_to(browser, is_wanted):
    """Press Tab until an element has the focus, which must be visible."""
    for _ in range(150):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        element = browser.switch_to.active_element
        if is_wanted(element):
            outline = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", element)
            assert outline != "none"
            return element
    raise AssertionError("Tab does not lead there")


def test_a_problem_is_announced(browser, link):
    browser.get(link[0].partition("/?")[0] + "/tables/known:iris")
    target = find(browser, "#field-target")
    target.clear()
    target.send_keys("colour")
    text_in(browser, "#plan", "The field “Outcome” names 'colour'")
    assert find(browser, "#plan").get_attribute("aria-live") == "polite"
    browser.execute_script("arguments[0].click()", find(browser, "#start"))
    text_in(browser, "#start-problem", "colour")
    assert find(browser, "#start-problem").get_attribute("role") == "alert"
    browser.get_log("browser")  # the refused request


def test_columns_beyond_the_first_page_are_found(browser, link):
    browser.get(link[0].partition("/?")[0] + "/tables/known:t-cells")
    text_in(browser, "#page-number", "Page 1 of 20")
    browser.execute_script("arguments[0].click()", find(browser, "#next"))
    text_in(browser, "#page-number", "Page 2 of 20")
    name = find(browser, "#columns-table .role").get_attribute("data-column")
    Select(find(browser, "#columns-table .role")).select_by_visible_text("Always keep")
    find(browser, "#find").send_keys(name)
    until(browser, lambda page: len(page.find_elements(By.CSS_SELECTOR, "#columns-table .role")) < 40)
    kept = find(browser, f"[data-column='{name}']")
    assert kept.get_property("value") == "keep"
