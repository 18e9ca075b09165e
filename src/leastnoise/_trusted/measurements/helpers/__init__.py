"""Helpers for the bounds of exact arithmetic and for measurements as JSON.

A release stays private if this code is wrong. Each file states the reason.
"""
