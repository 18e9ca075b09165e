"""Mutation testing of the trusted packages.

``make mutants`` runs all steps; docs/results/mutation.md has the results. The changes are those of
mutmut's operators, at import too; what runs them is written here, so that each mutant of a sample
meets the tests that cover it, quick ones first. Tests that read the code instead of running it are
left out.
"""
