"""Budgets, the privacy unit, costs, and how they add up; exact fractions, and bounds that are rounded to the safe side.

The proofs are in PROOFS-accounting.md beside this file.
"""

from leastnoise._accounting._budget import (
    ZCDP,
    ApproxDP,
    Budget,
    Neighbours,
    Privacy,
    PureDP,
    budget_from_json,
    fraction_from_text,
    fraction_to_text,
    parameters,
    privacy_from_json,
    readable,
    round_up,
)
from leastnoise._accounting._cost import (
    Charge,
    ConcentratedCost,
    Cost,
    GaussianCost,
    Noise,
    PureCost,
    SeriesCost,
    charge,
    charge_from_json,
    charge_text,
    cost_from_json,
    covers,
    is_charge_of,
    left,
    missing,
    rho_of,
    total,
    whole_budget,
)
from leastnoise._accounting._deltas import gaussian_is_private, zcdp_delta
from leastnoise._accounting._keys import KeyRule, keys_are_private
