"""The cached functions of the package, for tests that empty the caches."""

import functools
import sys

import leastnoise


def cached_functions():
    """List every cached function of the package."""
    modules = [
        module
        for name, module in [*sys.modules.items()]
        if name.split(".")[0] == leastnoise.__name__
    ]
    functions = {
        id(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, functools._lru_cache_wrapper)
    }
    return list(functions.values())
