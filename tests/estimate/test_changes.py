"""Changes over periods: differences know that the noise of both periods is related, and ratios are covered by their intervals."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from simulated import releases

MONTHS = ln.Dates("2024-01-01", "2024-06-30", "month")
DOMAIN = ln.Domain(month=MONTHS, sex=["F", "M"])


def test_intervals_cover_true_changes_and_ratios_whose_noise_is_related() -> None:
    asked = ln.queries(DOMAIN, month="prefix", sex="identity") + ln.queries(DOMAIN, month=ln.change(2), sex="identity")
    plan = ln.plan(asked, ln.ZCDP("1/50"))
    counts = np.array([[400, 90], [500, 80], [100, 70], [50, 60], [700, 300], [20, 200]])
    rows = [
        (f"2024-{month:02}-03", sex)
        for month, row in enumerate(counts, 1)
        for sex, number in zip("FM", row, strict=True)
        for _ in range(number)
    ]
    frame = pd.DataFrame(rows, columns=["month", "sex"])
    difference, ratio = counts[2:] - counts[:-2], counts[2:] / counts[:-2]
    held = np.zeros(2)
    for release in releases(plan, frame, range(80)):
        found = ln.changes(release, "month", 2, by=["sex"]).numbers
        assert found["difference"] == pytest.approx(release.tables["month:change 2 x sex"].answer, abs=1e-6)
        assert found["std_error"] == pytest.approx(release.tables["month:change 2 x sex"].noise_std)
        held += (
            ((found["low"] <= difference) & (difference <= found["high"])).mean(),
            ((found["ratio_low"] <= ratio) & (ratio <= found["ratio_high"])).mean(),
        )
    assert (held / 80 > 0.93).all()
    assert (held / 80 < 0.975).all()
    made = ln.changes(release, "month", 2, by=["sex"])
    assert list(made.columns())[:2] == ["month", "sex"]
    assert made.columns()["month"][0] == "2024-03 - 2024-01"


def test_a_ratio_to_what_may_be_nothing_has_no_upper_end() -> None:
    plan = ln.plan(ln.queries(DOMAIN, month="identity"), ln.PureDP(1))
    found = ln.changes(ln.release(plan, pd.DataFrame({"month": ["2024-02-01"] * 50}), seed=3), "month", 1).numbers
    assert (found["ratio_low"][0], found["ratio_high"][0]) == (0.0, np.inf)
    assert np.isnan(found["ratio"][0])
    with pytest.raises(ln.InputError, match="from 1 to 5; got 6"):
        ln.changes(ln.release(plan, pd.DataFrame({"month": []}), seed=3), "month", 6)
