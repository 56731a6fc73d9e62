"""Check a built site without the network: ``python docs/check_site.py docs/_build``.

Every link inside it leads to a page and an anchor that exist, and no page loads anything from elsewhere: no script,
style, font or picture. Links that a reader may follow out of the site are not checked.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Tags and attributes that a browser loads by itself.
LOADED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
}


class Page(HTMLParser):
    """Links, anchors and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for name, value in values.items():
            if (tag, name) in LOADED and values.get("rel") not in (
                "canonical",
                "next",
                "prev",
                "index",
                "search",
            ):
                self.loaded.append(value)


def faults(site: Path) -> list[str]:
    """Return what is wrong, one line each."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        for target in page.loaded + page.links:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https") or target.startswith("//"):
                if target in page.loaded:
                    found.append(f"{here}: loads {target} from the network")
            elif not parts.scheme:
                file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                if not file.exists():
                    found.append(f"{here}: {target} does not exist")
                elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
                    found.append(f"{here}: {target} has no such anchor")
    outside = re.compile(r"(?:url\(|@import )['\"]?((?:https?:)?//[^'\")]+)")
    for style in site.rglob("*.css"):
        loaded = outside.findall(style.read_text(errors="replace"))
        found += [f"{style.relative_to(site)}: loads {target} from the network" for target in loaded]
    return found


def main() -> int:
    """Print what is wrong, and return 1 if anything is."""
    site = Path(sys.argv[1])
    wrong = faults(site)
    print("\n".join(wrong) or f"{site}: all links inside hold, and nothing is loaded from the network.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
