"""One folder for each thing that is planned; a planner turns a workload into a strategy and never sees data."""

from leastnoise._planner._strategy import NotApplicable, Planner, Strategy
from leastnoise._planner.aware._buckets import MOST_BUCKETS, bucket_gram, difference_costs, first_levels, on_buckets, on_rectangles
from leastnoise._planner.aware._plane_blocks import DEEP, FIRST_SHARE, GROUP_SHARE, RECORDS, TEST_SHARE, divided, first_level, plane_regime
from leastnoise._planner.aware._truncated_sums_plans import asked_along, limited_strategy, noise_along
from leastnoise._planner.aware._truncated_sums_threshold import ThresholdChoice, candidate_cells, choose_threshold
from leastnoise._planner.covers._cover import covering
from leastnoise._planner.line._factors import (
    Fit,
    best_hierarchy,
    eigen_design,
    every_cell,
    gaussian_optimum,
    haar,
    level_tree,
    node_tree,
    p_identity,
)
from leastnoise._planner.papers._cuboids import cuboids
from leastnoise._planner.papers._fourier import fourier
from leastnoise._planner.products._kronecker import kronecker
from leastnoise._planner.products._union import union
from leastnoise._planner.tables._identity import identity
from leastnoise._planner.tables._marginals import marginals
from leastnoise._planner.tables._residual import residual, residual_max
from leastnoise._planner.tables._tilted import tilted
from leastnoise._planner.tables._workload import measured_workload

__all__ = [
    "DEEP",
    "FIRST_SHARE",
    "GROUP_SHARE",
    "MOST_BUCKETS",
    "RECORDS",
    "TEST_SHARE",
    "Fit",
    "NotApplicable",
    "Planner",
    "Strategy",
    "ThresholdChoice",
    "asked_along",
    "best_hierarchy",
    "bucket_gram",
    "candidate_cells",
    "choose_threshold",
    "covering",
    "cuboids",
    "difference_costs",
    "divided",
    "eigen_design",
    "every_cell",
    "first_level",
    "first_levels",
    "fourier",
    "gaussian_optimum",
    "haar",
    "identity",
    "kronecker",
    "level_tree",
    "limited_strategy",
    "marginals",
    "measured_workload",
    "node_tree",
    "noise_along",
    "on_buckets",
    "on_rectangles",
    "p_identity",
    "plane_regime",
    "residual",
    "residual_max",
    "tilted",
    "union",
]
