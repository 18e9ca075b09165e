"""JSON, texts and starts of searches, which other code of `accounting` checks.

A release stays private if this code is wrong. Each file says why.
"""
