"""Draw docs/images/app.png: the page of a small table with a suspicious cell (needs chromium and its driver).

Run ``python docs/app_picture.py``; it starts ``zeronorm app`` with a folder of its own and ends it.
"""

from __future__ import annotations

import base64
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WIDTH, PATIENCE_S = 1100, 60
N_PATIENTS, N_GENES = 48, 9


def table_text() -> str:
    """Two of the genes carry the state; one cell is no number."""
    rng = np.random.default_rng(0)
    genes = rng.normal(6.0, 1.0, size=(N_PATIENTS, N_GENES)).round(2).astype(object)
    state = np.where(genes[:, 0] - genes[:, 1] > 0, "tumour", "normal")
    genes[5, 3] = "n.d."
    head = ["patient", "site", *(f"gene{i}" for i in range(1, N_GENES + 1)), "state"]
    rows = [
        [f"P{i:02}", f"site{i % 4 + 1}", *map(str, row), label]
        for i, (row, label) in enumerate(zip(genes, state, strict=True), 1)
    ]
    return "\n".join(",".join(row) for row in [head, *rows]) + "\n"


def main(picture: Path) -> None:
    """Start the page, open the table, write the picture."""
    folder = Path(tempfile.mkdtemp())
    (folder / "patients.csv").write_text(table_text(), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "zeronorm.cli._main",
        "app",
        "--no-browser",
        "--folder",
        str(folder / "runs"),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    link = re.search(r"http\S+", server.stdout.readline())
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    browser = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert link is not None
        browser.get(link[0])
        browser.find_element(By.ID, "file").send_keys(str(folder / "patients.csv"))
        wait = WebDriverWait(browser, PATIENCE_S)
        wait.until(lambda page: page.find_elements(By.ID, "field-target"))
        browser.find_element(By.ID, "field-target").send_keys("state")
        wait.until(lambda page: "samples with" in page.find_element(By.ID, "plan").text)
        browser.execute_script("document.activeElement.blur()")
        height = browser.execute_script("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        shot = browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
        )
        picture.write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.quit()
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_S)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(__file__).parent / "images" / "app.png")
