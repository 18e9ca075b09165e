"""What a plan promises for every table, for people."""

from typing import TYPE_CHECKING, Any

from leastnoise._cli._output import unique

if TYPE_CHECKING:
    from leastnoise._plan import Plan


def expected(made: "Plan", level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every table: name, queries, rmse, largest_std and whether that is a bound, weight, measure or None.

    Errors of counts are in rows, those of sums in the measure's own amounts (not in multiples of its unit); None where they depend on the
    data.

    A table with a target also has it, what the plan makes of it, and whether it is kept.

    Args:
        made: a plan.
        level: of the intervals that margins are about.
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
                **({} if target is None else {"target": {target.kind: target.most}, target.kind: target.error, "kept": target.kept}),
            }
        )
    return found
