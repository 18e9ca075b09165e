"""The task with OpenDP."""

import time

from task import TABLES, VALUES, key, say

start = time.perf_counter()
# [page]
import itertools

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
context = dp.Context.compositor(
    data=pl.scan_csv("people.csv", schema={"sex": pl.String, "region": pl.String, "age": pl.Int64}),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=len(TABLES),
)
released = {}
for names in TABLES:
    cells = list(itertools.product(*(VALUES[name] for name in names)))
    keys = pl.LazyFrame(cells, schema=list(names), orient="row")
    query = context.query().group_by(*names).agg(dp.len(signed=True)).with_keys(keys)
    released[names] = query.release().collect()
# [/page]
say(
    time.perf_counter() - start,
    {
        key(names): {key(row[:-1]): row[-1] for row in frame.rows()}
        for names, frame in released.items()
    },
)
