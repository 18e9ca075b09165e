"""Settings that the program reads from environment variables.

A switch is on or off. A switch with any other value raises an error, because a typing error must
not silently turn the switch on or off. `check_environment` reads all settings. The check runs
before anything is paid, because some settings are needed only after the payment, when the report is
written.
"""

import os
from pathlib import Path

from leastnoise._trusted.check import refuse

CACHE = "LEASTNOISE_CACHE"
CACHE_FOLDER = "LEASTNOISE_CACHE_DIR"
CHARTS = "LEASTNOISE_CHARTS"
DEBUG = "LEASTNOISE_DEBUG"
PROGRESS = "LEASTNOISE_PROGRESS"
_DEFAULTS = {CACHE: True, CHARTS: True, DEBUG: False, PROGRESS: True}
_ON = ("on", "1", "true", "yes")
_OFF = ("off", "0", "false", "no")


def is_on(switch: str) -> bool:
    """Return whether an environment switch is on, by its value or its default.

    Args:
        switch: the name of the variable, one of the constants of this module.

    Raises:
        InputError: the value is neither on nor off.
    """
    value = os.environ.get(switch, "")
    if value == "":
        return _DEFAULTS[switch]
    if value.lower() in _ON:
        return True
    if value.lower() in _OFF:
        return False
    if switch == CACHE:
        advice = f" The folder of plans is {CACHE_FOLDER}."
    else:
        advice = ""
    allowed = "on, off, 1, 0, true, false, yes or no"
    raise refuse(switch, value, allowed, f"Change it or unset it.{advice}")


def cache_folder() -> Path | None:
    """Return the folder in LEASTNOISE_CACHE_DIR; None if it is not set.

    Raises:
        InputError: the path is not absolute.
    """
    value = os.environ.get(CACHE_FOLDER, "")
    if value == "":
        return None
    folder = Path(value)
    if not folder.is_absolute():
        advice = "Write the whole path, such as /var/cache/leastnoise."
        raise refuse(CACHE_FOLDER, value, "an absolute folder", advice)
    return folder


def check_environment() -> None:
    """Raise if an environment variable has a value that is not allowed.

    Raises:
        InputError: one of the variables has a value that cannot be used.
    """
    for switch in _DEFAULTS:
        is_on(switch)
    cache_folder()
