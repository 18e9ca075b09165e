"""Helpers for kinds, levels, labels and settings, all of which are public.

A release stays private if this code is wrong, because `Rule` and `Reading` check everything on
which privacy depends. Each file states the reason.
"""
