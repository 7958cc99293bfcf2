"""Check a built site: links inside lead to what there is, and nothing is loaded from elsewhere."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {given.get("id"), given.get("name")}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        loaded = given.get("src") or (given.get("href") if tag == "link" else None)
        if loaded and given.get("rel") not in ("canonical", "author", "license"):
            self.loads.append(loaded)


def main(site: Path) -> int:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        wrong += [
            f"{path}: loads {x}" for x in page.loads if urlsplit(x).scheme not in ("", "data")
        ]
        for link in page.links:
            scheme, host, file, _, place = urlsplit(link)
            if scheme or host:
                continue
            target = (path.parent / unquote(file)).resolve() if file else path.resolve()
            found = pages.get(target)
            if not target.exists() or (found and place and unquote(place) not in found.places):
                wrong.append(f"{path}: {link}")
    print("\n".join(wrong) or f"{len(pages)} pages, all links lead somewhere")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
