"""Public limits of exact answers, and measurements as text.

A release stays private if this code is wrong. Each file says why.
"""
