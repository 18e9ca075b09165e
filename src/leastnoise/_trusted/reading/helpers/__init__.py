"""Helpers for locations, declared types and failed connections.

A release stays private if this code is wrong, because it reads no value. Each file states the
reason.
"""
