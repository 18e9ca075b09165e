"""For the API reference: examples in docstrings, lines that begin with ``>>>``, become blocks of code."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^[ ]*>>> .*?(?=\n[ ]*\n|\Z)", flags=re.DOTALL | re.MULTILINE)


class Examples(griffe.Extension):
    """Puts fences around runs of example lines."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(
                lambda found: f"```pycon\n{found.group()}\n```", obj.docstring.value
            )
