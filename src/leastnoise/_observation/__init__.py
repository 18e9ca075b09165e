"""Noisy integers with the plan that made them: the only thing that crosses the wall."""

from leastnoise._observation._observation import Observation

__all__ = ["Observation"]
