"""The choice of tables that are counted in one pass.

A release stays private if this code is wrong. Each file says why.
"""
