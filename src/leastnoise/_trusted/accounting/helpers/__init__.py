"""Helpers of `accounting`: JSON, texts, and starting points of searches.

A release stays private if this code is wrong, because other code of `accounting` checks its
results. Each file states the reason.
"""
