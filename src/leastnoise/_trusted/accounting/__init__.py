"""Budgets, the privacy unit, costs, and their composition.

In exact fractions, and bounds that are rounded to the safe side.

The proofs are in PROOFS-accounting.md beside this file.
"""

from leastnoise._trusted.accounting._budget import (
    ZCDP,
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
    fraction_to_text,
    parameters,
    round_up,
)
from leastnoise._trusted.accounting._cost import (
    Charge,
    ConcentratedCost,
    Cost,
    GaussianCost,
    Noise,
    PureCost,
    SeriesCost,
    charge,
    charge_text,
    covers,
    is_charge_of,
    left,
    missing,
    rho_of,
    total,
    whole_budget,
)
from leastnoise._trusted.accounting._deltas import LEAST_DELTA, gaussian_is_private, zcdp_delta
from leastnoise._trusted.accounting._json import (
    budget_from_json,
    charge_from_json,
    cost_from_json,
    fraction_from_text,
    privacy_from_json,
)
from leastnoise._trusted.accounting._keys import KeyRule, keys_are_private, search_budget
