"""Strategies of papers, used by name: the automatic choice is never worse without them."""
