"""The versions that plans and releases depend on."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from leastnoise._plan._frozen import FrozenDict


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of leastnoise, NumPy and Python, by name.

    A plan or a release may differ between versions.
    """
    import platform  # imported here, because planning often does not need it
    from importlib.metadata import PackageNotFoundError, version

    try:
        package = version("leastnoise")
    except PackageNotFoundError:  # the program runs from a source tree
        package = "unknown"
    return FrozenDict(
        {"leastnoise": package, "numpy": np.__version__, "python": platform.python_version()}
    )
