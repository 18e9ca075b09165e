"""All descriptions that can be read: one line each, told apart by what they hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leastnoise._check import InputError
from leastnoise._descriptions._description import Description
from leastnoise._descriptions._readers import from_csvw, from_mbi, from_opendp, from_smartnoise, is_csvw, is_mbi, is_opendp, is_smartnoise

READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Description]], ...] = (
    (is_csvw, from_csvw),
    (is_mbi, from_mbi),
    (is_opendp, from_opendp),
    (is_smartnoise, from_smartnoise),
)
_KNOWN = "CSVW-EO (JSON), SmartNoise metadata (YAML), domain.json of mbi, and a domain that OpenDP serialized"


def read_description(path: Path) -> Description:
    """Read a description by what it holds, not by its name."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"The description {str(path)!r} cannot be read: {reason}. Name a file that you may read.") from None
    except UnicodeDecodeError:
        raise InputError(f"The description {str(path)!r} is not text in UTF-8. Known are {_KNOWN}.") from None
    value = _parsed(text, path)
    for fits, read in READERS:
        if fits(value):
            try:
                return read(value)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"The description {str(path)!r} looks like one for {read.__name__}, and is damaged. Mend it.") from None
    raise InputError(f"The description {str(path)!r} is none that is known: {_KNOWN}.")


def _parsed(text: str, path: Path) -> Any:
    """The value of a JSON or YAML text; numbers with a point stay texts, so that they are exact."""
    try:
        return json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        pass
    try:
        import yaml
    except ImportError:
        raise InputError("Descriptions in YAML need the extra 'yaml': pip install 'leastnoise[yaml]'.") from None
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts, lists and dictionaries alone
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"The description {str(path)!r} is neither JSON nor YAML. Known are {_KNOWN}.") from None
