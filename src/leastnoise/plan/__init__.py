"""The frozen, serialisable plan: public, made without data."""
