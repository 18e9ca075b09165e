"""From relative to exact noise scales: public, and not trusted, as the kernel computes the cost of what comes out anew."""

from leastnoise._fitting._fit import fit, rescaled, root_up, round_up

__all__ = ["fit", "rescaled", "root_up", "round_up"]
