"""The mechanism of plans whose measurements are all fixed in advance.

The mechanism has a single step, which is paid by its exact cost.
"""

import math
from collections.abc import Mapping
from typing import Any

from leastnoise._error import evaluate_plan, noise_name
from leastnoise._estimation import Finding, Outcome, public_counts_of_plan
from leastnoise._mechanisms._protocol import Explanation, Mechanism, Run
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._strategy_choice import choose_plan
from leastnoise._plan import ExpectedError, LinearPlan, Plan
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, InternalError, quoted
from leastnoise._trusted.kernel import Series
from leastnoise._workload import Workload


class Linear(Mechanism):
    """The mechanism that measures fixed queries and answers by least squares."""

    names = ()

    def supports(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - all of them
        """Return True: this mechanism answers every workload."""
        return True

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Return the data-independent plan of least expected error."""
        return choose_plan(workload, privacy, search)[0]

    def prepare(self, plan: Plan) -> Run:
        """Check a plan's stated errors; return the function that carries it out."""
        if not isinstance(plan, LinearPlan):
            plan.measured()  # refuses a plan with data-dependent measurements
            raise InternalError(
                "A plan that no other mechanism carries out must have fixed measurements."
            )
        measurements = plan.measurements
        exact = [public.block for public in public_counts_of_plan(plan)]
        computed = evaluate_plan(
            plan.workload, measurements, public_counts=exact, earlier=plan.earlier
        )
        _check_expected_errors(plan.expected_error(), computed.expected_error())

        def run(series: Series) -> Outcome:
            """Measure the queries of the plan, as the only step."""
            return Outcome(plan, plan.observed(series.measure(measurements)))

        return run

    def explain(self, plan: Plan) -> Explanation:
        """Return the kind of noise and the expected errors of a plan."""
        return Explanation(
            mechanism=noise_name(plan.measured()), expected_error=plan.expected_error()
        )

    def finding(self, facts: Mapping[str, Any]) -> Finding:  # noqa: ARG002 - there are none
        """Return the finding that nothing was chosen from the data."""
        return Finding()


def _check_expected_errors(stated: ExpectedError, computed: ExpectedError) -> None:
    """Raise if the errors that a plan states differ from the computed ones.

    A plan file may be damaged or written by hand.
    """
    total = computed.total_squared_error
    bound = stated.lower_bound
    is_bound = (
        isinstance(bound, (int, float))
        and not isinstance(bound, bool)
        and 0 <= bound <= total * (1 + 1e-6)
    )
    if not (_nearly_equal(stated.total_squared_error, total) and is_bound):
        raise InputError(
            f"The plan states a total squared error of {quoted(stated.total_squared_error)}, "
            f"with the lower bound {quoted(stated.lower_bound)}; its measurements have "
            f"{computed.total_squared_error:.6g}. Make the plan again; nothing was spent."
        )
    if len(stated.tables) != len(computed.tables) or not all(
        (table.name, table.largest_is_bound) == (other.name, other.largest_is_bound)
        and _nearly_equal(table.queries, other.queries)
        and _nearly_equal(table.weight, other.weight)
        and _nearly_equal(table.rmse, other.rmse)
        and _nearly_equal(table.largest_std, other.largest_std)
        for table, other in zip(stated.tables, computed.tables, strict=True)
    ):
        raise InputError(
            "The errors of tables that the plan states differ from the errors of its measurements. "
            "Make the plan again; nothing was spent."
        )


def _nearly_equal(stated: object, computed: float) -> bool:
    """Return whether a stated number is right up to a relative 1e-6."""
    return (
        isinstance(stated, (int, float))
        and not isinstance(stated, bool)
        and math.isclose(stated, computed, rel_tol=1e-6)
    )
