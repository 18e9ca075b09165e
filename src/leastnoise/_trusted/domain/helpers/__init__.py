"""Public kinds, levels, labels and settings; `Rule` and `Reading` check what matters.

A release stays private if this code is wrong. Each file says why.
"""
