"""Budgets, the privacy unit, costs, and their composition.

All numbers are exact fractions, or bounds that are rounded to the safe side.

The proofs are in PROOFS-accounting.md and PROOFS-mu.md in this folder.
"""

from leastnoise._trusted.accounting._budget import (
    BUDGET_FORMS,
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
    fraction_to_text,
    parameters_by_name,
    round_up,
)
from leastnoise._trusted.accounting._charge import (
    Charge,
    charge,
    charge_of_budget,
    charge_shortfall,
    has_late_delta,
    is_possible_charge,
    is_within_budget,
    left_of_budget,
    share_limit,
    spent_epsilon,
    step_charge,
    sum_charges,
    unspent_charge,
)
from leastnoise._trusted.accounting._cost import (
    ConcentratedCost,
    Cost,
    GaussianCost,
    Noise,
    PureCost,
    SeriesCost,
    covers,
    rho_of_cost,
)
from leastnoise._trusted.accounting._deltas import (
    LEAST_DELTA,
    gaussian_delta,
    gaussian_is_private,
    zcdp_delta,
)
from leastnoise._trusted.accounting._key_search_cost import KeyRule, keys_are_private, search_budget
from leastnoise._trusted.accounting._mu import (
    gaussian_epsilon,
    gaussian_mu_squared,
    largest_accepted,
    pure_epsilon,
    pure_mu_squared,
)
from leastnoise._trusted.accounting.helpers._budget_texts import (
    charge_text,
    format_amount,
    left_text,
    limit_text,
    spent_text,
)
from leastnoise._trusted.accounting.helpers._cost_json import (
    budget_from_json,
    charge_from_json,
    cost_from_json,
    fraction_from_text,
    privacy_from_json,
)
