"""From relative to exact noise scales: public, and not trusted, as the kernel computes the cost of what comes out anew."""

from leastnoise._fitting._budgets import NOISES, allowed_epsilon, allowed_mu_squared, pure_share
from leastnoise._fitting._concentrated import zcdp_epsilon
from leastnoise._fitting._fit import fit, rescaled, root_up, round_up
from leastnoise._fitting._gaussian import gaussian_mu_squared
from leastnoise._fitting._keys import found_often, key_rule

__all__ = [
    "NOISES",
    "allowed_epsilon",
    "allowed_mu_squared",
    "fit",
    "found_often",
    "gaussian_mu_squared",
    "key_rule",
    "pure_share",
    "rescaled",
    "root_up",
    "round_up",
    "zcdp_epsilon",
]
