"""All planners, in the order in which they are shown: a new one is an import and a line here."""

from collections.abc import Mapping

from leastnoise._planner._covering import COVERING
from leastnoise._planner._kronecker import (
    EIGEN_DESIGN,
    GAUSSIAN_OPTIMUM,
    HAAR,
    HIERARCHY,
    LEVEL_TREE,
    P_IDENTITY,
    P_IDENTITY_BLOCKS,
    TOEPLITZ_ROOT,
)
from leastnoise._planner._marginals import MARGINALS
from leastnoise._planner._papers import CUBOIDS, CUBOIDS_EVEN, FOURIER, FOURIER_EVEN, RESIDUAL_MAX, WORKLOAD_EVEN
from leastnoise._planner._strategy import Planner
from leastnoise._planner._tables import IDENTITY, RESIDUAL, WORKLOAD
from leastnoise._planner._tilted import TILTED
from leastnoise._planner._union import UNION

_ALL = (
    IDENTITY,
    WORKLOAD,
    MARGINALS,
    COVERING,
    RESIDUAL,
    TILTED,
    HIERARCHY,
    HAAR,
    LEVEL_TREE,
    TOEPLITZ_ROOT,
    EIGEN_DESIGN,
    P_IDENTITY,
    P_IDENTITY_BLOCKS,
    GAUSSIAN_OPTIMUM,
    UNION,
    RESIDUAL_MAX,
    WORKLOAD_EVEN,
    FOURIER,
    FOURIER_EVEN,
    CUBOIDS,
    CUBOIDS_EVEN,
)
PLANNERS: Mapping[str, Planner] = {planner.name: planner for planner in _ALL}
