"""Texts for people, and locks that only decide which process waits.

A release stays private if this code is wrong. Each file says why.
"""
