"""How much memory a release will need, from its public plan alone, and its refusal before anything is paid."""

import math

from leastnoise._accuracy import require_memory
from leastnoise._plan import Plan
from leastnoise._release import written as as_written

# Bytes, measured on the largest tables of each kind (identities, prefixes and all ranges of 10^6 answers) and rounded up.
_A_CELL = 64  # counts, noise and noisy answers of the table that is measured
_KEPT = 16  # of every noisy answer until the release is done
_AN_ANSWER = 100  # of the table that is worked on
_A_WRITTEN_ANSWER = 1000  # with its labels, in both formats


def release_memory(plan: Plan, *, written: bool) -> int:
    """About how many bytes a release takes beside the program itself and its rows."""
    asked, measurements = plan.workload.products, plan.measurements
    answers = max(product.rows for product in as_written(asked))
    if measurements is None:
        tables = [(product.rows, math.prod(plan.domain.kind(name).size for name in product.attributes)) for product in asked]
    else:
        tables = [(block.rows, math.prod(factor.operator.size for factor in block.factors)) for block in measurements.blocks]
    measured = _A_CELL * max(map(max, tables)) + _KEPT * sum(rows for rows, _ in tables)
    return measured + (_A_WRITTEN_ANSWER if written else _AN_ANSWER) * answers


def check_memory(plan: Plan, *, written: bool) -> None:
    """Refuse a release that would need more memory than there is."""
    require_memory(
        release_memory(plan, written=written),
        "This release",
        "Ask for fewer or smaller tables, or run it on a larger machine; nothing was spent.",
    )
