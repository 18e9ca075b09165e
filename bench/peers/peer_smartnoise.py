"""The task with SmartNoise SQL."""

import time

from task import TABLES, key, say

start = time.perf_counter()
# [page]
import pandas as pd
import snsql

columns = {"sex": {"type": "string"}, "region": {"type": "string"}, "age": {"type": "int"}}
metadata = {
    "": {"db": {"people": {"row_privacy": True, "censor_dims": False, "rows": 20_000, **columns}}}
}
released = {}
for names in TABLES:
    privacy = snsql.Privacy(epsilon=1 / len(TABLES), delta=1e-9)
    reader = snsql.from_df(pd.read_csv("people.csv"), privacy=privacy, metadata=metadata)
    released[names] = reader.execute(
        f"SELECT {', '.join(names)}, COUNT(*) AS n FROM db.people GROUP BY {', '.join(names)}"
    )
# [/page]
answers = {
    key(names): {key(list(row[:-1])): float(row[-1]) for row in rows[1:]}
    for names, rows in released.items()
}
say(time.perf_counter() - start, answers)
