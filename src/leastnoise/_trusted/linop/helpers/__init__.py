"""Helpers for JSON, block trees and transposes, which no cost uses.

A release stays private if this code is wrong. Each file states the reason.
"""
