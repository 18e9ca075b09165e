"""Hooks of mkdocs for the site of the documentation.

They add CONTRIBUTING.md as a page, explain the words of the glossary where they come first, and set
landmarks.
"""

import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
SOURCES = "https://github.com/leastnoise/leastnoise/tree/main/"
GLOSSARY = Path(__file__).with_name("notation.md")
_CLOSED = re.compile(
    r"<(a|pre|h[1-6]|script|th|button)\b.*?</\1>|<[^>]*>", re.DOTALL
)  # where no word is explained, and tags themselves


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add CONTRIBUTING.md as a page of the site."""
    content = contributing(PAGE.read_text(encoding="utf-8"))
    files.append(File.generated(config, "contributing.md", content=content))
    return files


def contributing(markdown: str) -> str:
    """Return CONTRIBUTING.md with links to pages of the site, and to the sources elsewhere."""
    within = markdown.replace("](docs/", "](")
    return re.sub(r"\]\((src|tests|contracts|changelog\.d)/", rf"]({SOURCES}\1/", within)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to the page lead to it within the site."""
    return markdown.replace("](../CONTRIBUTING.md", "](contributing.md")


def glossary() -> dict[str, str]:
    """The words of the page on notation, and a plain sentence for each."""
    rows = GLOSSARY.read_text(encoding="utf-8").split("## In plain words")[1].split("## ")[0]
    return dict(re.findall(r"^\| ([\w ]+) \| (.*[.]) \|$", rows, flags=re.MULTILINE))


def explained(html: str, notation: str) -> str:
    """A page in which the first of each word of the glossary leads to the page on notation, and has its sentence as a title."""
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
    """Words are explained on every page but the one that explains them."""
    if page.file.src_uri == GLOSSARY.name:
        return html
    return explained(html, "../" * page.file.src_uri.count("/") + "notation.html")


def on_post_page(output: str, **_: Any) -> str:
    """Nothing on a page stands outside a landmark: the whole footer is the information about the site, the bar below it leads to pages."""
    output = output.replace('<div role="contentinfo">', "<div>").replace(
        "<footer>", '<footer role="contentinfo">'
    )
    return output.replace(
        'role="note" aria-label="Versions"', 'role="navigation" aria-label="Previous and next page"'
    )
