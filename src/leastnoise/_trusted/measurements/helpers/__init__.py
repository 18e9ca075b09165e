"""Public bounds within which answers are exact, and measurements as JSON.

A release stays private if this code is wrong. Each file says why.
"""
