"""The report in a real browser: drawing, console messages, network requests, and interaction."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise

import pytest

from report.made_records import made_records
from zeronorm.report._html import render_report, report_data_of

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


NAMES = ["strange_selection", "regression_selection", "comparison", "ten_methods", "what_next"]
WIDTHS = [1400, 400]
SCHEMES = ["light", "dark", "print"]


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
    for name in NAMES:
        file = folder / f"{name}.html"
        file.write_text(render_report(*request.getfixturevalue(name)), encoding="utf-8")
        found[name] = file.as_uri()
    return found


def show(browser, address, width=1200, scheme="light"):
    """Open a page at a width, in light or dark colours or as it is printed."""
    browser.get_log("performance")
    features = [{"name": "prefers-color-scheme", "value": "light" if scheme == "print" else scheme}]
    media = {"media": "print" if scheme == "print" else "", "features": features}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)


def requested(browser):
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


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


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("name", ["strange_selection", "ten_methods"])
def test_numbers_in_tables_stay_on_one_line(browser, pages, name, width):
    show(browser, pages[name], width)
    lines = browser.execute_script(
        "return [...document.querySelectorAll('#features-table tbody td, #method-table tbody td')]"
        ".filter(c => /^[-\\d.e]+( %)?$/.test(c.innerText.trim())).map(c => {"
        " const text = document.createRange(); text.selectNodeContents(c);"
        " const line = parseFloat(getComputedStyle(c).lineHeight);"
        " return [c.innerText.trim(), text.getBoundingClientRect().height, line] })"
    )
    assert len(lines) > 20
    assert [text for text, height, line in lines if height > 1.5 * line] == []


@pytest.mark.parametrize("width", [1200, 1400])
def test_the_table_of_features_fits_the_page(browser, pages, width):
    show(browser, pages["what_next"], width)
    wide, room = browser.execute_script(
        "const scroll = document.querySelector('#features-table').closest('.scroll');"
        "document.querySelectorAll('#features-table td.text').forEach(c => c.textContent = 'higher in malignant');"
        "return [scroll.scrollWidth, scroll.clientWidth]"
    )
    assert wide <= room
    lines = browser.execute_script(
        "const cell = document.querySelector('#features-table td.text'), text = document.createRange();"
        "text.selectNodeContents(cell);"
        "return text.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight)"
    )
    assert lines < 2.5  # no word is broken


def test_names_beside_lines_are_not_cut(browser, tmp_path):
    values = dict.fromkeys(("gram-schmidt", "mutual-information"), (0.1, 0.2, 0.15, 0.12, 0.18))
    report_data = report_data_of(made_records("error_rate", values, sizes=(1, 2, 4, None)), n_features=50)
    file = tmp_path / "report.html"
    file.write_text(render_report(report_data.result, report_data.records), encoding="utf-8")
    show(browser, file.as_uri())
    ends = browser.execute_script(
        "return [...document.querySelectorAll('.drawing.wide svg.chart')].flatMap(c => "
        "[...c.querySelectorAll('.end-name')].map(t => [t.textContent, t.getBoundingClientRect().right,"
        " c.getBoundingClientRect().right]))"
    )
    assert len(ends) > 1
    assert [name for name, end, room in ends if end > room] == []


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


def test_charts_work_by_keyboard(browser, pages):
    from selenium.webdriver import ActionChains, Keys

    show(browser, pages["strange_selection"])
    for identifier, shown in (
        ("figure-error", "features:"),
        ("figure-values", "SD"),
        ("figure-path", "subset"),
    ):
        browser.execute_script(f"document.getElementById('{identifier}').focus()")
        ActionChains(browser).send_keys(Keys.ARROW_RIGHT).send_keys(Keys.ARROW_RIGHT).perform()
        tip = browser.find_element("id", "tip")
        assert "shown" in tip.get_attribute("class")
        text = tip.get_attribute("textContent")
        assert shown in text, text
        ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        assert "shown" not in tip.get_attribute("class")


def test_pointing_at_a_cell_shows_its_names(browser, pages, comparison):
    from selenium.webdriver import ActionChains

    show(browser, pages["comparison"])
    chart = browser.find_element("id", "figure-shared")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    width = chart.rect["width"]
    ActionChains(browser).move_to_element_with_offset(chart, int(width * 0.45), -40).perform()
    text = browser.find_element("id", "tip").get_attribute("textContent")
    assert "lasso" in text
    assert "% of the folds" in text


def luminance(colour):
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_colour_schemes(browser, pages, scheme):
    show(browser, pages["strange_selection"], scheme=scheme)
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
    show(browser, pages["comparison"], scheme="light")
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(paper)
    browser.find_element("id", "theme").click()
    assert luminance(browser.execute_script(paper)) < 0.1 < luminance(before)


def test_it_prints_on_white(browser, pages):
    show(browser, pages["strange_selection"], scheme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(paper) == "rgb(255, 255, 255)"
    tools = "return getComputedStyle(document.querySelector('.tools')).display"
    assert browser.execute_script(tools) == "none"


@pytest.mark.parametrize("name", ["strange_selection", "comparison"])
def test_print_keeps_column_headings_and_does_not_split_cards(browser, pages, name):
    show(browser, pages[name], scheme="print")
    headings = browser.execute_script(
        "return [...document.querySelectorAll('section > .scroll thead th')].map(h =>"
        " h.getBoundingClientRect().height > 0 && h.innerText.trim().length > 0)"
    )
    assert headings
    assert all(headings)
    breaks = "return [...document.querySelectorAll('.card')].map(f => getComputedStyle(f).breakInside)"
    assert set(browser.execute_script(breaks)) == {"avoid"}
    printed = browser.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 10_000


@pytest.mark.parametrize("width", WIDTHS)
def test_opening_a_table_moves_no_card(browser, pages, width):
    show(browser, pages["comparison"], width)
    tops = "return [...document.querySelectorAll('.card')].map(c => c.getBoundingClientRect().top + scrollY)"
    before = browser.execute_script(tops)
    browser.execute_script("document.querySelectorAll('figure details').forEach(d => { d.open = true })")
    assert browser.execute_script(tops) == before
    rows = "return document.querySelector('figure .numbers tbody tr').getBoundingClientRect().height"
    assert browser.execute_script(rows) > 10


# -- each part of the report at each width and in each colour scheme --

# Name of a part, the report it is in, and a condition that must hold there.
PARTS = {
    "headline with the chance level": (
        "strange_selection",
        "textOf('h1').startsWith('No evidence that these 12 features predict y')"
        " && textOf('.key-figures').includes('error rate without any feature')",
    ),
    "procedure and final set apart": (
        "strange_selection",
        "all('.key-figures h2').map(e => e.innerText).join('|') ==="
        " 'The procedure, measured on samples that were not used for selection|'"
        " + 'The final set, selected from all samples'",
    ),
    "chosen size on the path": (
        "strange_selection",
        "shown('[data-figure=path] .drawing svg .marked').length === 1",
    ),
    "direction and effect": (
        "strange_selection",
        "['selected in folds', 'direction', 'coefficient', 'p alone', 'q alone'].every("
        "h => textOf('#features-table thead').includes(h))"
        " && textOf('#features-table tbody').includes('higher in')",
    ),
    "picture of each feature": (
        "strange_selection",
        "shown('[data-figure=features] .drawing svg .box').length >= 24",
    ),
    "scatter for a regression": (
        "regression_selection",
        "shown('[data-figure=features] .dots').every(p => p.getAttribute('d').split('h.01').length === 61)"
        " && shown('[data-figure=features] .dots').length > 0",
    ),
    "methods in a table": (
        "ten_methods",
        "['95 % interval', 'stability', 'seconds per fit', 'p against the best', 'p against'].every("
        "h => textOf('#method-table thead').includes(h)) && all('#method-table tbody tr').length === 10"
        " && inside('#method-table-text')",
    ),
    "random features in the picture": ("comparison", "textOf('#method-table tbody').includes('random')"),
    "names of ten methods": (
        "ten_methods",
        "new Set(shown('[data-figure=error] .key, [data-figure=error] .end-name').map("
        "e => e.textContent)).size === 10",
    ),
    "redundancy with a scale and both labels": (
        "strange_selection",
        "getComputedStyle(document.querySelector('[data-figure=redundancy] .scale')).backgroundImage"
        ".includes('gradient') && textOf('[data-figure=redundancy] .legend-list').includes('−1 to 1')"
        " && shown('[data-figure=redundancy] .drawing svg text').filter(t => t.textContent === 'g7').length === 2",
    ),
    "axes within their bounds": (
        "strange_selection",
        "shown('[data-figure=error] .drawing svg .tick').every(t => !/^[-−]/.test(t.textContent))",
    ),
    "every figure as a file": (
        "strange_selection",
        "['svg', 'png'].every(kind => all(`figure.card [data-download=${kind}]`).length === all('figure.card').length)",
    ),
    "what next": (
        "what_next",
        "shown('#next pre').length >= 2 && textOf('#next').includes('zeronorm apply')"
        " && document.querySelector('main').lastElementChild.id === 'next' && inside('#next')",
    ),
}
VISIBLE = "[...document.querySelectorAll('svg.chart')].filter(c => c.getBoundingClientRect().width > 0)"
LOOKING = """
const all = s => [...document.querySelectorAll(s)];
const shown = s => all(s).filter(e => e.getBoundingClientRect().width > 0);
const textOf = s => all(s).map(e => e.innerText).join(' ').replace(/\\s+/g, ' ');
const inside = s => shown(s).length > 0 && shown(s).every(e => e.getBoundingClientRect().right <= innerWidth);
"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_each_report_at_each_width_and_in_each_look(browser, pages, name, width, scheme):
    """Checks that change nothing share one page, because opening it takes longer than the checks."""
    show(browser, pages[name], width, scheme)
    for part, (report, seen) in PARTS.items():
        if report == name:
            assert browser.execute_script(f"{LOOKING} return {seen}") is True, part
    charts_fit_the_page_and_none_is_cut(browser, width)
    if scheme != "print":  # paper is wider than a telephone
        text_in_charts_can_be_read_and_stays_inside(browser)


def charts_fit_the_page_and_none_is_cut(browser, width):
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    boxes = browser.execute_script(
        f"return {VISIBLE}.map(c => {{ const b = c.getBoundingClientRect();"
        " const card = c.closest('.card').getBoundingClientRect();"
        " return [b.left, b.right, card.left, card.right, b.width, b.height] })"
    )
    figures = browser.execute_script("return document.querySelectorAll('figure.card').length")
    assert len(boxes) == figures  # of the two drawings of a figure one is shown
    for left, right, card_left, card_right, drawn_width, height in boxes:
        assert card_left <= left < right <= card_right
        assert drawn_width > 250
        assert height > 40


def text_in_charts_can_be_read_and_stays_inside(browser):
    texts = browser.execute_script(
        f"return {VISIBLE}.flatMap(c => {{ const b = c.getBoundingClientRect();"
        " return [...c.querySelectorAll('text')].map(t => { const r = t.getBoundingClientRect();"
        " return [t.textContent, parseFloat(getComputedStyle(t).fontSize) * b.width / c.viewBox.baseVal.width,"
        " r.left - b.left, b.right - r.right, r.top - b.top, b.bottom - r.bottom] }) })"
    )
    assert min(size for _, size, *_ in texts) >= 9.5
    assert [text for text in texts if min(text[2:]) < -3] == []


# -- many lines --


def test_ten_lines_are_named_at_their_ends_without_overlap(browser, pages):
    show(browser, pages["ten_methods"], 1400)
    names = browser.execute_script(
        "return [...document.querySelectorAll('#figure-error .end-name')].map(t => {"
        " const b = t.getBoundingClientRect(); return [t.textContent, b.top, b.bottom] })"
    )
    assert sorted(name for name, *_ in names) == [f"method-{chr(97 + i)}" for i in range(10)]
    names.sort(key=lambda name: name[1])
    for (_, top, _), (_, below, _) in pairwise(names):
        assert below - top >= 11


@pytest.mark.parametrize("width", WIDTHS)
def test_a_press_on_a_name_hides_its_line(browser, pages, width):
    show(browser, pages["ten_methods"], width)
    figure = browser.find_element("css selector", "figure[data-figure=error]")
    keys = figure.find_elements("css selector", ".key")
    assert len(keys) == 10
    identifier = "figure-error" if width > 560 else "figure-error-narrow"
    shown = f"return getComputedStyle(document.querySelector('#{identifier} [data-series=\"3\"]')).display"
    keys[3].click()
    assert keys[3].get_attribute("aria-pressed") == "false"
    assert browser.execute_script(shown) == "none"
    keys[3].click()
    assert browser.execute_script(shown) != "none"


def test_intervals_of_many_lines_appear_under_the_pointer(browser, pages):
    from selenium.webdriver import ActionChains

    show(browser, pages["ten_methods"], 1400)
    opacity = "return getComputedStyle(document.querySelector('#figure-error [data-series=\"2\"] .interval')).opacity"
    assert browser.execute_script(opacity) == "0"
    key = browser.find_elements("css selector", "figure[data-figure=error] .key")[2]
    ActionChains(browser).move_to_element(key).perform()
    assert float(browser.execute_script(opacity)) > 0.3
    other = (
        "return getComputedStyle(document.querySelector('#figure-error .series[data-series=\"5\"]')).opacity"
    )
    assert float(browser.execute_script(other)) < 0.5


# -- figures as files --


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_figures_download(browser, pages, tmp_path, kind, width):
    import time

    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    show(browser, pages["comparison"], width)
    browser.execute_script(
        f"document.querySelector('figure[data-figure=error] [data-download={kind}]').click()"
    )
    file = tmp_path / f"zeronorm-error.{kind}"
    for _ in range(600):
        if file.exists() and file.stat().st_size > 0:
            break
        time.sleep(0.1)
    content = file.read_bytes()
    if kind == "png":
        assert content.startswith(b"\x89PNG")
        assert int.from_bytes(content[16:20], "big") >= 1500  # pixels across
        return
    text = content.decode()
    assert 'xmlns="http://www.w3.org/2000/svg"' in text
    assert "var(--" not in text
    assert "fisher" in text
    browser.get(file.as_uri())
    stroke = "return getComputedStyle(document.querySelector('polyline')).stroke"
    assert browser.execute_script(stroke) == "rgb(0, 114, 178)"


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    """A report with a table of 60 samples."""
    import numpy as np

    import zeronorm

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 6)), np.repeat(["a", "b"], 30)
    X[30:, 0] += 2.0
    result = zeronorm.select(X, y, method="fisher", features=2, cv=3, permutations=0)
    file = tmp_path_factory.mktemp("long") / "report.html"
    file.write_text(render_report(result, result.records), encoding="utf-8")
    return file.as_uri()


SHOWN_ROWS = (
    "return [...document.querySelectorAll('#samples-table tbody tr')].filter(r => r.offsetHeight > 0).length"
)


def test_a_long_table_shows_its_first_rows_and_all_on_demand(browser, long_page):
    show(browser, long_page)
    assert browser.execute_script(SHOWN_ROWS) == 20
    browser.execute_script(
        "const i = document.querySelector('input[data-table=samples-table]');"
        "i.value = '6'; i.dispatchEvent(new Event('input'))"
    )
    assert browser.execute_script(SHOWN_ROWS) == sum("6" in str(i) for i in range(1, 61))
    browser.execute_script(
        "const i = document.querySelector('input[data-table=samples-table]');"
        "i.value = ''; i.dispatchEvent(new Event('input'));"
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Show all 60 rows').click()"
    )
    assert browser.execute_script(SHOWN_ROWS) == 60


def test_a_table_can_be_saved_as_csv_with_all_rows(browser, long_page):
    show(browser, long_page)
    text = browser.execute_async_script(
        "const done = arguments[0]; URL.createObjectURL = b => { b.text().then(done); return '#'; };"
        "document.querySelector('button[aria-label^=\"Download as CSV: Held-out\"]').click()"
    )
    lines = text.lstrip("\ufeff").split("\r\n")
    assert lines[0].startswith("sample")
    assert len(lines) == 62  # heading, 60 samples, end


@pytest.mark.parametrize("width", WIDTHS)
def test_the_contents_stay_in_sight_and_lead_to_every_section(browser, long_page, width):
    show(browser, long_page, width)
    links = browser.execute_script(
        "return [...document.querySelectorAll('#contents a')].map(a => [a.textContent, a.getAttribute('href')])"
    )
    assert "Samples" in [text for text, _ in links]
    for _, target in links:
        assert browser.execute_script("return document.querySelector(arguments[0]) !== null", target)
    browser.execute_script("window.scrollTo(0, 3000)")
    assert browser.execute_script(
        "return document.getElementById('contents').getBoundingClientRect().top >= 0"
    )
