"""How values show themselves in notebooks."""

from collections.abc import Iterable
from html import escape


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """A small table of names and texts in HTML, everything escaped.

    Args:
        title: above it.
        facts: a name and a text each.

    >>> html_facts("a <b>", [("x", "1 & 2")])
    '<table><caption>a &lt;b&gt;</caption><tr><th>x</th><td>1 &amp; 2</td></tr></table>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts)
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
