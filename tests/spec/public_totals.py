"""A survey and specs with public counts of it, by sex and by region."""

from pathlib import Path

import numpy as np
import pandas as pd

from leastnoise._spec import parse_spec

ROWS = 400
SPEC = """
[privacy]
{budget}
[domain.sex]
categories = ["F", "M"]
complete = true
[domain.age]
integers = [0, 11]
complete = true
[domain.store]
categories = ["a", "b", "c", "d", "e", "f"]
complete = true
levels.region = {{ groups = {{ north = ["a", "c"], south = ["b", "d", "e", "f"] }} }}
[[workload]]
{asked}
[plan]
strategy = "{strategy}"
{public}
"""
SEX = '[[public]]\nqueries = { sex = "identity" }\ncounts = [%s]\n'
REGION = '[[public]]\nqueries = { store = { level = "region" } }\ncounts = [%s]\n'
PAIRS = "marginals = { ways = 2 }"


def spec_of(public, strategy="marginals", budget='epsilon = "1/4"', workload=PAIRS, folder=Path()):
    """Return a spec with public counts."""
    return parse_spec(
        SPEC.format(budget=budget, strategy=strategy, public=public, asked=workload), folder
    )


RANDOM = np.random.default_rng(5)
AGES = RANDOM.binomial(11, 0.3, ROWS)
SEXES = np.array(["F", "M"])[(RANDOM.random(ROWS) < AGES / 15).astype(int)]
SURVEY = pd.DataFrame({"sex": SEXES, "age": AGES, "store": RANDOM.choice([*"abcdef"], ROWS)})
NORTH = int(SURVEY["store"].isin(["a", "c"]).sum())
COUNTS = {"sex": [int((sex == SEXES).sum()) for sex in "FM"], "region": [NORTH, ROWS - NORTH]}
PUBLIC_SEX_AND_REGION = SEX % str(COUNTS["sex"])[1:-1] + REGION % str(COUNTS["region"])[1:-1]
