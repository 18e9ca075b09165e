"""Differentially private answers to a batch of linear queries, with the least error known to be possible.

    domain, workload, budget -> plan (public) -> release of a table -> answers with error bars

Names are loaded when first used, so that ``import leastnoise`` and ``leastnoise --help`` are quick.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastnoise._check import BudgetError, InputError, InternalError, LeastNoiseError, LedgerError, PaidError
    from leastnoise.accounting import ZCDP, ApproxDP, Privacy, PureDP
    from leastnoise.domain import Bins, Categories, Coded, Domain, Integers, Measure
    from leastnoise.estimate import cdf, means, quantiles
    from leastnoise.measure import Ledger
    from leastnoise.plan import Plan
    from leastnoise.release import Release, read_release
    from leastnoise.session import audit, compare, plan, read_spec, release, resume
    from leastnoise.workload import (
        Workload,
        all_ranges,
        identity,
        marginals,
        matrix,
        predicates,
        prefix,
        queries,
        ranges,
        total,
    )

__version__ = "0.1.0"

_HOMES = {
    "_check": ("BudgetError", "InputError", "InternalError", "LeastNoiseError", "LedgerError", "PaidError"),
    "accounting": ("ApproxDP", "Privacy", "PureDP", "ZCDP"),
    "domain": ("Bins", "Categories", "Coded", "Domain", "Integers", "Measure"),
    "estimate": ("cdf", "means", "quantiles"),
    "measure": ("Ledger",),
    "plan": ("Plan",),
    "release": ("Release", "read_release"),
    "session": ("audit", "compare", "plan", "read_spec", "release", "resume"),
    "workload": (
        "Workload",
        "all_ranges",
        "identity",
        "marginals",
        "matrix",
        "predicates",
        "prefix",
        "queries",
        "ranges",
        "total",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Bins",
    "BudgetError",
    "Categories",
    "Coded",
    "Domain",
    "InputError",
    "Integers",
    "InternalError",
    "LeastNoiseError",
    "Ledger",
    "LedgerError",
    "Measure",
    "PaidError",
    "Plan",
    "Privacy",
    "PureDP",
    "Release",
    "Workload",
    "all_ranges",
    "audit",
    "cdf",
    "compare",
    "identity",
    "marginals",
    "matrix",
    "means",
    "plan",
    "predicates",
    "prefix",
    "quantiles",
    "queries",
    "ranges",
    "read_release",
    "read_spec",
    "release",
    "resume",
    "total",
]


class _Package(ModuleType):
    """Keeps the functions ``plan`` and ``release`` where importing the packages of those names would put the packages."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in ("plan", "release") and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'leastnoise' has no attribute {name!r}")
    return getattr(import_module(f"leastnoise.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
