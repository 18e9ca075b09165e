"""Answers, error bars, manifest and report."""
