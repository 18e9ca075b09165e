"""Helpers for outcomes as text, locks of running releases, and seeded noise.

A release stays private if this code is wrong. Each file states the reason.
"""
