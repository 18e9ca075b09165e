"""The one place where private data, planner, kernel, estimate and release meet."""
