"""Show the examples in docstrings as code blocks in the API reference.

An example begins with ``>>>``.
"""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^[ ]*>>> .*?(?=\n[ ]*\n|\Z)", flags=re.DOTALL | re.MULTILINE)


class Examples(griffe.Extension):
    """Put the examples of docstrings into fenced code blocks."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(
                lambda found: f"```pycon\n{found.group()}\n```", obj.docstring.value
            )
