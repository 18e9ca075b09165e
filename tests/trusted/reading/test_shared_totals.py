"""Tables with shared K-norm noise count one snapshot of a server under concurrent writes."""

import threading

import adbc_driver_postgresql.dbapi as driver
import numpy as np
import pytest

import leastnoise as ln
from leastnoise._trusted.kernel import _measurement
from simulated import read_table
from trusted.reading.postgres import table

NAMES = ("a", "b", "c")
DOMAIN = ln.Domain({name: ln.Integers(0, 2) for name in NAMES})


def write_rows(url, stop, has_begun):
    """Insert rows one by one, some with missing values, until told to stop."""
    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        while not stop.is_set():
            cursor.execute("INSERT INTO written VALUES (0, 1, NULL), (2, NULL, 1), (1, 1, 9)")
            has_begun.set()


@pytest.mark.slow
def test_tables_of_a_group_count_one_snapshot(url, monkeypatch):
    monkeypatch.setenv("VISITS_URL", url)
    rows = [[str(at % 3), str(at % 2), "NULL" if at % 5 else "1"] for at in range(60)]
    source = table(url, "written", dict.fromkeys(NAMES, "bigint"), rows)
    source = ln.DatabaseTable("public.written", source.connection)
    plan = ln.plan(ln.marginals(DOMAIN, ways=1), ln.PureDP(1))
    assert plan.strategy == "k_norm"

    stop = threading.Event()
    has_begun = threading.Event()
    writer = threading.Thread(target=write_rows, args=(url, stop, has_begun))
    writer.start()
    totals = []
    try:
        assert has_begun.wait(60)
        for seed in range(3):
            private = read_table(plan, source)
            exact = dict(_measurement.exact_answers(plan.measured(), private))
            totals.append({int(counts.sum()) for counts in exact.values()})
            release = ln.release(plan, source, seed=seed)
            assert all(np.isfinite(answer.answer).all() for answer in release.tables)
    finally:
        stop.set()
        writer.join()
    assert all(len(total) == 1 for total in totals)
    assert min(totals[-1]) > min(totals[0])  # others wrote meanwhile
