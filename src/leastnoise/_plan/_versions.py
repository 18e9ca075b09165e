"""The versions of what plans and releases."""

import numpy as np


def versions() -> dict[str, str]:
    """The versions of what makes a plan or a release."""
    import platform  # here, because planning is often done without
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("leastnoise")
    except PackageNotFoundError:  # run from a source tree
        own = "unknown"
    return {"leastnoise": own, "numpy": np.__version__, "python": platform.python_version()}
