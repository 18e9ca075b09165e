"""Days of a month and of a year."""

from datetime import date, timedelta

from leastnoise._charts import Axis


def days(count):
    labels = tuple(
        (date(2024, 1, 1) + timedelta(days=number)).isoformat() for number in range(count)
    )
    return (Axis(name="day", labels=labels, kind="times"),)


AXES = {"calendar": [days(31), days(366)]}
