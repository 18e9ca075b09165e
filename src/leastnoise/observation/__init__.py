"""Noisy integers with the plan that made them: all that crosses the wall."""
