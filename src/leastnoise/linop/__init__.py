"""Small frozen integer operators and functions on them."""
