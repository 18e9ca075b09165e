"""Fixtures of an example release."""

from example_releases import observation, release  # noqa: F401 - fixtures of tests here
