"""Hooks of mkdocs for the site of the documentation.

They add CONTRIBUTING.md as a page, link to the sources, explain the first occurrence of each word
of the glossary on a page, and mark landmarks for screen readers.
"""

import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
SOURCES = "https://github.com/leastnoise/leastnoise/tree/main/"
GLOSSARY = Path(__file__).parents[1] / "notation.md"
# Folders that are no pages of the site.
_OUTSIDE = r"src|tests|contracts|changelog\.d|\.github"
# Elements in which no word is explained, and all tags.
_CLOSED = re.compile(r"<(a|pre|h[1-6]|script|th|button)\b.*?</\1>|<[^>]*>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add CONTRIBUTING.md as a page of the site."""
    content = contributing(PAGE.read_text(encoding="utf-8"))
    files.append(File.generated(config, "contributing.md", content=content))
    return files


def contributing(markdown: str) -> str:
    """Return CONTRIBUTING.md with links as on a page in the folder docs."""
    within = markdown.replace("](docs/", "](")
    return re.sub(rf"\]\(({_OUTSIDE})/", r"](../\1/", within)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Link to the page of CONTRIBUTING.md in the site, and to the sources on GitHub."""
    within = markdown.replace("](../CONTRIBUTING.md", "](contributing.md")
    return re.sub(rf"\]\(\.\./({_OUTSIDE})/", rf"]({SOURCES}\1/", within)


def glossary() -> dict[str, str]:
    """Return the words of the page on notation, and a plain sentence for each."""
    rows = GLOSSARY.read_text(encoding="utf-8").split("## In plain words")[1].split("## ")[0]
    return dict(re.findall(r"^\| ([\w ]+) \| (.*[.]) \|$", rows, flags=re.MULTILINE))


def explained(html: str, notation: str) -> str:
    """Link the first occurrence of each word of the glossary to its explanation.

    The link has the explaining sentence as its title.

    Args:
        html: the content of a page.
        notation: the relative address of the page on notation.
    """
    for word, sentence in glossary().items():
        closed = [match.span() for match in _CLOSED.finditer(html)]
        places = (match.span() for match in re.finditer(rf"\b{word}\b", html, flags=re.IGNORECASE))
        start, end = next(
            ((a, b) for a, b in places if not any(low < b and a < high for low, high in closed)),
            (0, 0),
        )
        if end:
            link = (
                f'<a class="term" href="{notation}#in-plain-words" '
                f'title="{escape(sentence)}">{html[start:end]}</a>'
            )
            html = html[:start] + link + html[end:]
    return html


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Explain the words of the glossary on every page except the page on notation."""
    if page.file.src_uri == GLOSSARY.name:
        return html
    return explained(html, "../" * page.file.src_uri.count("/") + "notation.html")


def on_post_page(output: str, **_: Any) -> str:
    """Put all content of a page into landmarks.

    The whole footer becomes the information about the site, and the bar below it the navigation.
    """
    output = output.replace('<div role="contentinfo">', "<div>").replace(
        "<footer>", '<footer role="contentinfo">'
    )
    return output.replace(
        'role="note" aria-label="Versions"', 'role="navigation" aria-label="Previous and next page"'
    )
