"""The templates of pages and of messages to machines, read and compiled once a process."""

from functools import cache
from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).with_name("templates")


def filled(template: str, **values: Any) -> str:
    """A template with its values; every text is escaped, and a value that is missing is an error."""
    return str(_templates().get_template(template).render(**values))


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
