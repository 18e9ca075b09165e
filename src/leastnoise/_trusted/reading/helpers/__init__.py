"""Locations, declared types and failed connections; no value is read here.

A release stays private if this code is wrong. Each file says why.
"""
