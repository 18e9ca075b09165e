"""Small releases as the program writes them today.

They are kept so that they can be read for as long as the project lives.

python tests/data/make.py FORMAT     writes FORMAT-laplace, -gaussian, -weights, -floored and -dawa
                                     below releases/, seeded, without reports

Run it only when the format of releases gets a new number, and keep the old ones: what was published
cannot be written again.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import leastnoise as ln

FOLDER = Path(__file__).parent / "releases"


def people():
    """Made-up rows."""
    rng = np.random.default_rng(20)
    rows = 800
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], rows),
            "age": rng.integers(17, 33, rows),
            "month": rng.choice(["2024-01-15", "2024-02-15", "2024-03-15"], rows),
            "income": rng.integers(0, 100, rows),
            "place": np.where(
                rng.random(rows) < 0.9, rng.integers(0, 128, rows), rng.integers(384, 512, rows)
            ),
            **{f"a{number}": rng.integers(0, 2, rows) for number in range(14)},
        }
    )


def plans():
    """Return a plan of every noise, and one that depends on the data."""
    domain = ln.Domain(
        sex=["F", "M"],
        age=ln.Integers(17, 32),
        month=ln.Dates("2024-01-01", "2024-03-31", by="month"),
        measures={"pay": ln.Measure("income", 0, 100, unit="0.5")},
    )
    tables = ln.queries(domain, sex="identity", month="identity", weight=2) + ln.queries(
        domain, sex="identity"
    )
    workload = (
        tables
        + ln.queries(domain, sex="identity", age="prefix")
        + ln.queries(domain, month="identity", sum="pay")
    )
    steps = ln.queries(
        ln.Domain(place=ln.Coded(512)), place=ln.ranges([(0, end) for end in range(15, 512, 16)])
    )
    ages = ln.queries(ln.Domain(age=ln.Integers(17, 32)), age="prefix")
    coded = ln.Domain({f"a{number}": ln.Coded(2) for number in range(14)})
    return {
        "laplace": ln.plan(workload, ln.PureDP(1), strategy="p_identity"),
        "gaussian": ln.plan(tables, ln.ZCDP("1/2"), strategy="residual"),
        "weights": ln.plan(ages, ln.ZCDP("1/2"), strategy="hierarchy"),
        "floored": ln.plan(
            ln.marginals(coded, ways=1), ln.ApproxDP(3, "1e-3"), strategy="workload"
        ),
        "dawa": ln.plan(steps, ln.PureDP("1/20"), strategy="dawa"),
    }


def main(number):
    """Write a release of every plan."""
    os.environ["LEASTNOISE_CHARTS"] = "off"
    for name, plan in plans().items():
        target = FOLDER / f"{number}-{name}"
        ln.release(plan, people(), seed=14, out=target, options=ln.Options(formats=("csv",)))
        (target / "report.html").unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
