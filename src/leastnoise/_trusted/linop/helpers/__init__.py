"""Operators as text, block trees and transposes, which no privacy cost needs.

A release stays private if this code is wrong. Each file says why.
"""
