"""The task with leastnoise."""

import sys
import time

from task import TABLES, key, say

start = time.perf_counter()
# [page]
import leastnoise as ln

people = ln.Domain(sex=["F", "M"], region=list("ABCDEFGH"), age=ln.Integers(0, 99))
plan = ln.plan(ln.marginals(people, upto=2), ln.PureDP(1))
print(plan.expected_error(), file=sys.stderr)  # of every table, before anything is spent
release = ln.release(plan, "people.csv", ledger="people.ledger")
# [/page]
answers = {}
for names in TABLES:
    columns = release.tables[" x ".join(names)].columns()  # frames need a library of data frames
    answers[key(names)] = {
        key(row[:-1]): float(row[-1])
        for row in zip(*(columns[name] for name in names), columns["answer"], strict=True)
    }
say(time.perf_counter() - start, answers)
