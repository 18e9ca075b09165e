"""The task with Tumult Analytics."""

import time

from task import TABLES, VALUES, key, say

start = time.perf_counter()
# [page]
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

people = SparkSession.builder.getOrCreate().read.csv("people.csv", header=True, inferSchema=True)
session = Session.from_dataframe(PureDPBudget(1), "people", people, protected_change=AddOneRow())
released = {}
for names in TABLES:
    keys = KeySet.from_dict({name: VALUES[name] for name in names})
    counts = QueryBuilder("people").groupby(keys).count()
    released[names] = session.evaluate(counts, PureDPBudget(1 / len(TABLES))).toPandas()
# [/page]
answers = {
    key(names): {key(list(row[:-1])): float(row[-1]) for row in frame.itertuples(index=False)}
    for names, frame in released.items()
}
say(time.perf_counter() - start, answers)
