"""A domain of places in counties in states, by sex and age, for tests of levels."""

import numpy as np

PLACES = [f"{state}{county}{place}" for state in "12" for county in "123" for place in "0123"]


def domain_spec(ages, level, width):
    """Return the domain in TOML: places, sexes, and ages from 0 with a level of this width."""
    return f"""
[domain.place]
categories = {PLACES}
complete = true
levels.county = {{ digits = 2 }}
levels.state = {{ digits = 1 }}
[domain.sex]
categories = ["f", "m"]
complete = true
[domain.age]
integers = [0, {ages - 1}]
complete = true
levels.{level} = {{ width = {width} }}
"""


def draw_places(generator, rows):
    """Return a place for each row; a few places have most of the rows."""
    return generator.choice(PLACES, rows, p=generator.dirichlet(np.full(len(PLACES), 0.3)))
