"""One module a family of strategies; none imports another."""
