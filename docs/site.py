"""For mkdocs: CONTRIBUTING.md, which stands beside the folder of the documentation, is a page of the site."""

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
