"""The report in a real browser: it draws, stays silent, asks the network for nothing, and can be used."""

from __future__ import annotations

import json
import shutil

import pytest

from zeronorm.report.html import render_report

selenium = pytest.importorskip("selenium", reason="selenium is not installed (it is in the dev extra)")
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


@pytest.fixture(scope="module")
def browser():
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, request):
    """Files of all kinds of report."""
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for name in ("strange_selection", "regression_selection", "comparison"):
        file = folder / f"{name}.html"
        file.write_text(render_report(*request.getfixturevalue(name)), encoding="utf-8")
        found[name] = file.as_uri()
    return found


def show(browser, address, width=1200, **media):
    browser.get_log("performance")
    features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)


def requested(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


NAMES = ["strange_selection", "regression_selection", "comparison"]


@pytest.mark.parametrize("name", NAMES)
def test_charts_render_without_errors_or_requests(browser, pages, name):
    show(browser, pages[name])
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.drawing.wide svg.chart')].map(c => [c.getBoundingClientRect().width,"
        " c.getBoundingClientRect().height, c.querySelectorAll('path, rect').length])"
    )
    assert len(boxes) >= 3
    assert all(width > 300 and height > 40 and parts > 1 for width, height, parts in boxes)
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    outside = [url for url in requested(browser) if not url.startswith(("file:", "data:"))]
    assert outside == []
    assert browser.execute_script("return window.hacked === undefined")


def test_hostile_names_are_shown_as_text(browser, pages, strange_selection):
    show(browser, pages["strange_selection"])
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#features-table tbody th bdi')].map(e => e.textContent)"
    )
    assert shown == [feature.name for feature in strange_selection[0].selected]
    assert browser.execute_script("return document.querySelectorAll('img, b').length") == 0


def test_tables_sort_both_ways_and_filter(browser, pages):
    show(browser, pages["strange_selection"])
    rows = "[...document.querySelectorAll('#features-table tbody tr')]"
    column = f"return {rows}.map(r => parseFloat(r.cells[{{}}].innerText))"
    press = "document.querySelectorAll('#features-table thead button')[{}].click()"
    browser.execute_script(press.format(2))
    scores = browser.execute_script(column.format(2))
    assert scores == sorted(scores)
    assert len(set(scores)) > 1
    browser.execute_script(press.format(2))
    assert browser.execute_script(column.format(2)) == sorted(scores, reverse=True)
    state = "return document.querySelectorAll('#features-table thead th')[2].getAttribute('aria-sort')"
    assert browser.execute_script(state) == "descending"
    browser.execute_script(press.format(0))
    assert browser.execute_script(column.format(0)) == list(range(1, 13))
    field = browser.find_element("id", "filter")
    field.send_keys("SAME")
    visible = f"return {rows}.filter(r => !r.hidden).length"
    assert browser.execute_script(visible) == 2


@pytest.mark.parametrize("name", NAMES)
def test_nothing_sticks_out_on_a_phone(browser, pages, name):
    show(browser, pages[name], width=390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('.drawing.narrow svg.chart text')].map(t => {"
        " const b = t.getBoundingClientRect(); return Math.min(Math.max(b.height, b.width), 99) })"
    )
    assert min(sizes) > 5


def test_charts_work_by_keyboard(browser, pages):
    from selenium.webdriver import ActionChains, Keys

    show(browser, pages["strange_selection"])
    for identifier, words in (
        ("figure-error", "features:"),
        ("figure-values", "SD"),
        ("figure-path", "subset"),
    ):
        browser.execute_script(f"document.getElementById('{identifier}').focus()")
        ActionChains(browser).send_keys(Keys.ARROW_RIGHT).send_keys(Keys.ARROW_RIGHT).perform()
        tip = browser.find_element("id", "tip")
        assert "shown" in tip.get_attribute("class")
        text = tip.get_attribute("textContent")
        assert words in text or "mean" in text
        ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        assert "shown" not in tip.get_attribute("class")


def test_pointing_at_a_cell_tells_its_names(browser, pages, comparison):
    from selenium.webdriver import ActionChains

    show(browser, pages["comparison"])
    chart = browser.find_element("id", "figure-shared")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    width = chart.rect["width"]
    ActionChains(browser).move_to_element_with_offset(chart, int(width * 0.45), -40).perform()
    text = browser.find_element("id", "tip").get_attribute("textContent")
    assert "lasso" in text
    assert "% of the training parts" in text


def luminance(colour):
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_colour_schemes(browser, pages, scheme):
    show(browser, pages["strange_selection"], prefers_color_scheme=scheme)
    pairs = browser.execute_script(
        "const style = s => getComputedStyle(document.querySelector(s));"
        "const card = style('.card').backgroundColor, page = style('body').backgroundColor;"
        "return [[style('h1').color, page], [style('figcaption').color, card], [style('svg.chart .tick').fill, card],"
        " [style('.warnings li').color, style('.warnings').backgroundColor], [style('summary').color, card]]"
    )
    for ink, paper in pairs:
        light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert (luminance(pairs[0][1]) > 0.5) == (scheme == "light")


def test_the_theme_can_be_switched(browser, pages):
    show(browser, pages["comparison"], prefers_color_scheme="light")
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(paper)
    browser.find_element("id", "theme").click()
    assert luminance(browser.execute_script(paper)) < 0.1 < luminance(before)


def test_it_prints_on_white(browser, pages):
    show(browser, pages["strange_selection"], prefers_color_scheme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert (
        browser.execute_script("return getComputedStyle(document.querySelector('.tools')).display") == "none"
    )
    printed = browser.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 10_000
