"""Reproduce the figures and tables of papers.

The library does not contain this package: `leastnoise experiments NAME` finds it in a
source checkout.
"""
