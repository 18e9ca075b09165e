"""For mkdocs: CONTRIBUTING.md, beside the folder of the documentation, is a page of the site, and the theme gets its landmarks."""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page, with its links as they are from within the folder."""
    files.append(File.generated(config, "contributing.md", content=PAGE.read_text(encoding="utf-8").replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to the page lead to it within the site."""
    return markdown.replace("](../CONTRIBUTING.md", "](contributing.md")


def on_post_page(output: str, **_: Any) -> str:
    """Nothing on a page stands outside a landmark: the whole footer is the information about the site, the bar below it leads to pages."""
    output = output.replace('<div role="contentinfo">', "<div>").replace("<footer>", '<footer role="contentinfo">')
    return output.replace('role="note" aria-label="Versions"', 'role="navigation" aria-label="Previous and next page"')
