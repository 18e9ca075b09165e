"""From relative to exact noise scales: public, and not trusted, as the kernel computes the cost of what comes out anew."""

from leastnoise._fitting._fit import (
    NOISES,
    allowed_epsilon,
    allowed_mu_squared,
    fit,
    found_often,
    gaussian_mu_squared,
    key_rule,
    pure_share,
    rescaled,
    root_up,
    round_up,
    zcdp_epsilon,
)

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
