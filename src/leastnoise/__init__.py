"""Answer batches of linear queries under differential privacy.

The expected error is the smallest that is known to be possible.

    domain, workload, budget -> plan (public) -> release of a table -> answers with error bars

Examples in docstrings begin after ``import leastnoise as ln``, ``import numpy as np`` and ``import
pandas as pd``.

Names are loaded when first used, so that ``import leastnoise`` and ``leastnoise --help`` are quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastnoise._domain import (
        Bins,
        Categories,
        Coded,
        Dates,
        Decimals,
        Domain,
        Edges,
        Integers,
        Measure,
        PerCellBound,
        Reading,
        UnitTotal,
        Unknown,
    )
    from leastnoise._estimation import (
        ab_test,
        cdf,
        changes,
        compare_groups,
        compare_releases,
        correlations,
        means,
        quantiles,
        r_squared,
        regression,
        shares,
        variances,
    )
    from leastnoise._holder import check
    from leastnoise._plan import Plan, plan_bounds, plan_categories, plan_max_rows
    from leastnoise._planning import Least, ab_power, compare, plan, target_errors
    from leastnoise._profile import profile
    from leastnoise._publication import write_comparison
    from leastnoise._release import Options, Release
    from leastnoise._session import (
        SpecFile,
        audit,
        export,
        find_bounds,
        find_categories,
        read_release,
        read_spec,
        release,
        release_series,
        resume,
    )
    from leastnoise._trusted.accounting import GDP, ZCDP, ApproxDP, Privacy, PureDP
    from leastnoise._trusted.check import (
        BudgetError,
        GuardError,
        InputError,
        InternalError,
        LeastNoiseError,
        LedgerError,
        PaidError,
    )
    from leastnoise._trusted.kernel import Ledger
    from leastnoise._trusted.reading import CSV, DatabaseTable, Joined
    from leastnoise._workload import (
        Workload,
        all_ranges,
        cdf_queries,
        change,
        correlation_queries,
        identity,
        level,
        marginals,
        matrix,
        mean_queries,
        predicates,
        prefix,
        quantile_queries,
        queries,
        r_squared_queries,
        ranges,
        regression_queries,
        sql,
        total,
        variance_queries,
    )

__version__ = "0.2.0"

_HOMES = {
    "_trusted.check": (
        "BudgetError", "GuardError", "InputError", "InternalError", "LeastNoiseError",
        "LedgerError", "PaidError",
    ),
    "_trusted.accounting": ("ApproxDP", "GDP", "Privacy", "PureDP", "ZCDP"),
    "_trusted.reading": ("CSV", "DatabaseTable", "Joined"),
    "_domain": (
        "Bins", "Categories", "Coded", "Dates", "Decimals", "Domain", "Edges", "Integers",
        "Measure", "PerCellBound", "Reading", "UnitTotal", "Unknown",
    ),
    "_estimation": (
        "ab_test", "cdf", "changes", "compare_groups", "compare_releases", "correlations", "means",
        "quantiles", "r_squared", "regression", "shares", "variances",
    ),
    "_holder": ("check",),
    "_trusted.kernel": ("Ledger",),
    "_plan": ("Plan", "plan_bounds", "plan_categories", "plan_max_rows"),
    "_publication": ("write_comparison",),
    "_release": ("Options", "Release"),
    "_planning": ("Least", "ab_power", "compare", "plan", "target_errors"),
    "_profile": ("profile",),
    "_session": (
        "SpecFile", "audit", "export", "find_bounds", "find_categories", "read_release",
        "read_spec", "release", "release_series", "resume",
    ),
    "_workload": (
        "Workload", "all_ranges", "cdf_queries", "change", "correlation_queries", "identity",
        "level", "marginals", "matrix", "mean_queries", "predicates", "prefix", "quantile_queries",
        "queries", "r_squared_queries", "ranges", "regression_queries", "sql", "total",
        "variance_queries",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CSV", "GDP", "ZCDP", "ApproxDP", "Bins", "BudgetError", "Categories", "Coded", "DatabaseTable",
    "Dates", "Decimals", "Domain", "Edges", "GuardError", "InputError", "Integers", "InternalError",
    "Joined", "Least", "LeastNoiseError", "Ledger", "LedgerError", "Measure", "Options",
    "PaidError", "PerCellBound", "Plan", "Privacy", "PureDP", "Reading", "Release", "SpecFile",
    "UnitTotal", "Unknown", "Workload", "ab_power", "ab_test", "all_ranges", "audit", "cdf",
    "cdf_queries", "change", "changes", "check", "compare", "compare_groups", "compare_releases",
    "correlation_queries", "correlations", "export", "find_bounds", "find_categories", "identity",
    "level", "marginals", "matrix", "mean_queries", "means", "plan", "plan_bounds",
    "plan_categories", "plan_max_rows", "predicates", "prefix", "profile", "quantile_queries",
    "quantiles", "queries", "r_squared", "r_squared_queries", "ranges", "read_release", "read_spec",
    "regression", "regression_queries", "release", "release_series", "resume", "shares", "sql",
    "target_errors", "total", "variance_queries", "variances", "write_comparison",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'leastnoise' has no attribute {name!r}")
    return getattr(import_module(f"leastnoise.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
