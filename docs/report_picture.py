"""Draw the report of ``zeronorm demo``: its head for the first page, and the whole with numbers for start.rst.

Run ``zeronorm demo --out demo-report``, then ``python docs/report_picture.py demo-report/report.html`` (needs chromium
and its driver).
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import sys
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

WIDTH = 1200
# CSS selectors of the elements that get the numbers 1, 2 …, in the order of the list in start.rst.
PARTS = (
    "h1",
    ".key-figures .tile",
    ".key-figures .tile:last-child",
    "[data-figure=error] h2",
    "[data-figure=features] h2",
    "#features-title",
    "[data-figure=frequency] h2",
    "[data-figure=redundancy] h2",
    "[data-figure=path] h2",
)
NUMBERED = """
const selectors = %s;
selectors.forEach((selector, i) => {
  const part = document.querySelector(selector), badge = document.createElement('span');
  badge.textContent = i + 1;
  badge.style.cssText = 'position:absolute;width:30px;height:30px;border-radius:15px;background:#b5179e;color:#fff;' +
    'font:bold 18px/30px sans-serif;text-align:center;z-index:9';
  const box = part.getBoundingClientRect();
  badge.style.left = `${box.left + scrollX - 22}px`;
  badge.style.top = `${box.top + scrollY - 8}px`;
  document.body.append(badge);
});
return document.querySelector('#methods-title').closest('section').getBoundingClientRect().top + scrollY;
"""
END_OF_FIRST_FIGURE = """
return document.querySelector('[data-figure]').getBoundingClientRect().bottom + scrollY + 12;
"""


def main(report: Path, pictures: Path) -> None:
    """Open the report, write a picture of its head, then number its elements and write a picture of all."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    browser = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(report.resolve().as_uri())
        _save(browser, browser.execute_script(END_OF_FIRST_FIGURE), pictures / "report-top.png")
        height = browser.execute_script(NUMBERED % json.dumps(PARTS))
        _save(browser, height, pictures / "report-annotated.png")
    finally:
        browser.quit()


def _save(browser: Chrome, height: float, picture: Path) -> None:
    """Write the page down to this height as a picture."""
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    request = {"captureBeyondViewport": True, "clip": clip}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", request)
    drawing = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    drawing.quantize(64, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent / "images")
