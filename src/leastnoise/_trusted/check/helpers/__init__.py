"""Helpers that write texts for people, and locks that make processes wait.

A release stays private if this code is wrong. Each file states the reason.
"""
