"""Check a built site: every internal link and anchor exists, and no page loads files from other sites.

``python docs/check_links.py docs/_build/html`` prints broken links and then exits with status 1.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links, loaded files and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a":
            self.links.add(found.get("href", ""))
        elif tag in ("img", "script", "iframe", "source"):
            self.fetched.add(found.get("src", ""))
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.fetched.add(found.get("href", ""))


def problems(site: Path) -> list[str]:
    """One line for every broken link and every file that is loaded from another site."""
    pages = {
        file: Page(file.read_text(encoding="utf-8"))
        for file in sorted(site.rglob("*.html"))
        if "_static" not in file.parts
    }
    found = []
    for file, page in pages.items():
        name = file.relative_to(site)
        for link in sorted(page.links | page.fetched):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.fetched and parts.scheme != "data":
                    found.append(f"{name}: {link} is loaded from another site")
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file.resolve()
            if not target.exists():
                found.append(f"{name}: {link} points to a file that does not exist")
            elif parts.fragment and target.suffix == ".html":
                anchors = pages[site / target.relative_to(site.resolve())].anchors
                if unquote(parts.fragment) not in anchors:
                    found.append(f"{name}: {link} points to an anchor that does not exist")
    return found


if __name__ == "__main__":
    broken = problems(Path(sys.argv[1]))
    print("\n".join(broken) or "All internal links exist.")
    sys.exit(bool(broken))
