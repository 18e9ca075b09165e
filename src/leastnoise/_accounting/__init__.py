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
    parameters,
    privacy_from_json,
)
from leastnoise._accounting._charge import Charge, charge, charge_from_json, charge_text, is_charge_of, left, missing, total, whole_budget
from leastnoise._accounting._cost import ConcentratedCost, Cost, GaussianCost, Noise, PureCost, SeriesCost, cost_from_json, covers, rho_of
from leastnoise._accounting._fractions import fraction_from_text, fraction_to_text, readable, round_up
from leastnoise._accounting._gaussian import gaussian_is_private
from leastnoise._accounting._keys import KeyRule, keys_are_private
from leastnoise._accounting._zcdp import zcdp_delta

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Budget",
    "Charge",
    "ConcentratedCost",
    "Cost",
    "GaussianCost",
    "KeyRule",
    "Neighbours",
    "Noise",
    "Privacy",
    "PureCost",
    "PureDP",
    "SeriesCost",
    "budget_from_json",
    "charge",
    "charge_from_json",
    "charge_text",
    "cost_from_json",
    "covers",
    "fraction_from_text",
    "fraction_to_text",
    "gaussian_is_private",
    "is_charge_of",
    "keys_are_private",
    "left",
    "missing",
    "parameters",
    "privacy_from_json",
    "readable",
    "rho_of",
    "round_up",
    "total",
    "whole_budget",
    "zcdp_delta",
]
