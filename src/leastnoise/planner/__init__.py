"""One module a family of strategies, none importing another; a planner turns a workload into a strategy and never sees data."""

from leastnoise.planner._identity import identity
from leastnoise.planner._marginals import hierarchy, marginals
from leastnoise.planner._strategy import NotApplicable, Planner, Strategy, proportional_weights
from leastnoise.planner._workload import measured_workload

__all__ = ["NotApplicable", "Planner", "Strategy", "hierarchy", "identity", "marginals", "measured_workload", "proportional_weights"]
