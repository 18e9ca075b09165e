"""What a plan promises for every table, for people."""

from typing import TYPE_CHECKING, Any

from leastnoise._cli._output import unique

if TYPE_CHECKING:
    from leastnoise._plan import Plan
    from leastnoise._session import Reached

METHODS = {
    "means": "std_error of a mean in a group of size rows, at most: by the delta method, at the largest mean that the bounds allow",
    "shares": "rows: standard error of the counts up to a cell; std_error is their share of size rows",
}


def expected(made: "Plan", level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every table: name, queries, rmse, largest_std and whether that is a bound, weight, measure or None.

    Errors of counts are in rows, those of sums in the measure's own amounts (not in multiples of its unit); None where they depend on the
    data.

    A table with a target also has it, what the plan makes of it, and whether it is kept.
    """
    from leastnoise._session import reached

    products = made.workload.products
    promised = [None] * len(products) if made.promise is None else made.promise.tables
    targets = [None] * len(products) if made.promise is None else reached(made, level)
    found = []
    for name, table, product, target in zip(unique([one.name for one in products]), promised, products, targets, strict=True):
        found.append(
            {
                "name": name,
                "queries": product.rows,
                "rmse": None if table is None else table.rmse * product.unit,
                "largest_std": None if table is None else table.largest_std * product.unit,
                "largest_is_bound": None if table is None else table.largest_is_bound,
                "weight": float(product.weight),
                "measure": product.measure,
                **_target(target),
            }
        )
    return found


def expected_statistics(made: "Plan", level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every statistic: its name, what was asked for, its tables, the error of its counts, and what follows at a size.

    Means with a target also have it, what the plan makes of it, and whether it is kept.
    """
    from leastnoise._accuracy import statistic_errors
    from leastnoise._session import reached_by_means

    if made.promise is None:
        return []
    return [
        {
            "name": one.statistic.name,
            "asked": one.statistic.to_json(),
            "tables": list(one.tables),
            "rows": one.rows,
            "largest_rows": one.largest_rows,
            "size": None if one.statistic.size is None else float(one.statistic.size),
            "std_error": one.std_error,
            "method": METHODS["means" if one.statistic.form.of_measure else "shares"],
            **_target(target),
        }
        for one, target in zip(statistic_errors(made), reached_by_means(made, level), strict=True)
    ]


def _target(found: "Reached | None") -> dict[str, Any]:
    return {} if found is None else {"target": {found.kind: found.most}, found.kind: found.error, "kept": found.kept}
