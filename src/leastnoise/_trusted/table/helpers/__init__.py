"""Helpers that choose which tables are counted in one pass over the rows.

A release stays private if this code is wrong. Each file states the reason.
"""
