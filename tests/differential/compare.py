"""Answer random SQL statements by leastnoise, nearly without noise, and by DuckDB."""

import argparse
import itertools
import math
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, field

import duckdb
import pandas as pd

import leastnoise as ln
from differential.exact import ExactNumbers
from differential.statements import Undecided, random_setting, random_statement
from leastnoise._release import answer_statement
from leastnoise._workload import UNDECIDED, SqlSettings, read_statements

OUTSIDE = "__outside__"
_MOST = 8  # statements that are planned together


@dataclass
class Tally:
    """Numbers of random statements by result."""

    accepted: int = 0
    released: int = 0
    with_rows_left_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)


def run(count, seed, one_released_in=6):
    """Compare random statements, until this number of them are accepted.

    Args:
        count: the number of statements.
        seed: of the statements and tables.
        one_released_in: one table in so many is released with noise; of the others the answers are
            exact, which is far faster.
    """
    rng = random.Random(seed)
    tally = Tally()
    number = 0
    while tally.accepted < count:
        number += 1
        is_released = number % one_released_in == 0
        setting = random_setting(rng, attributes=2 if is_released else 4)
        size = min(2 if is_released else _MOST, count - tally.accepted)
        batch = [*_accepted(rng, setting, size, tally)]
        before = len(tally.different)
        _compare_batch(setting, batch, tally, seed=number if is_released else None)
        tally.accepted += len(batch)
        tally.released += len(batch) * is_released
        for fault in tally.different[before:]:
            print(fault, flush=True)
    return tally


def _accepted(rng, setting, count, tally):
    accepted = 0
    while accepted < count:
        written = random_statement(rng, setting)
        try:
            ln.sql(setting.domain, written.text, unit=setting.unit)
        except ln.InputError as error:
            tally.refused[_reason(str(error))] += 1
            continue
        accepted += 1
        yield written


def _reason(message):
    """Return a message without the parts of its statement."""
    for pattern, reason in _REASONS.items():
        if re.search(pattern, message):
            return reason
    return message[:90]


_REASONS = {
    r"keeps no value that \w+ may have": "a condition that no row can fulfil",
    r"cuts through the cell": "an expression that cuts through a cell",
    r"the queries of units by": "people counted by groups that are no cells",
    r"SUM of an expression": "SUM of what is no measure",
    r"A quantile of": "a quantile of what is no attribute",
}


def _compare_batch(setting, batch, tally, seed):
    """Compare statements that are planned together; with a seed they are released with noise."""
    workload = ln.sql(setting.domain, *(written.text for written in batch), unit=setting.unit)
    release = None
    if seed is not None:
        release = ln.release(_plan(workload, setting.unit), setting.rows, seed=seed)
    exact_numbers = ExactNumbers(setting.rows, setting.unit)
    with duckdb.connect(":memory:") as database:
        database.register("frame", setting.read)
        database.execute(
            "CREATE TABLE sales AS SELECT * REPLACE (CAST(day AS DATE) AS day) FROM frame"
        )
        for written in batch:
            (statement,) = read_statements(
                workload.domain, [written.text], SqlSettings(unit=setting.unit)
            )
            tally.with_rows_left_out += bool(statement.left_out)
            exact = (
                None
                if release is not None
                else pd.DataFrame(answer_statement(statement, exact_numbers))
            )
            frame = exact if release is None else release.sql(written.text, "pandas")
            reference = written.reference(undecided_of(statement, written))
            try:
                rows = database.execute(reference).fetchall()
            except duckdb.BinderException:  # such as COUNT_IF of a number
                tally.refused["what DuckDB refuses"] += 1
                continue
            if fault := _difference(statement, written, frame, rows):
                tally.different.append(
                    f"{written.text}\n  reference: {reference}\n  domain: {workload.domain}\n"
                    f"  {fault}"
                )


def _plan(workload, unit):
    """Return a plan with as little noise as exact scales allow."""
    for epsilon, strategy in itertools.product((300, 100, 30, 10), ("workload", "marginals")):
        budget = ln.PureDP(epsilon * (20 if unit else 1))
        privacy = ln.Privacy(budget, unit_column=unit, max_rows=20) if unit else budget
        try:
            return ln.plan(workload, privacy, strategy=strategy)
        except ln.InputError as error:
            if "No strategy can be used" not in str(error):
                raise
    raise AssertionError("no budget has a scale that is exact")


def undecided_of(statement, written):
    """Return in which clauses a statement leaves out rows outside the domain."""
    columns = dict(
        zip([column.name for column in statement.columns], statement.columns, strict=True)
    )
    answers = {}
    for answer in written.answers:
        aggregates = columns[answer.alias].aggregates
        undecided = [aggregate.condition.undecided for aggregate in aggregates]
        answers[answer.alias] = frozenset().union(*undecided)
    groups: set[str] = set()
    shared: set[str] = set()
    for group in written.groups:
        column = columns[group.alias if group.alias in columns else group.expression].group
        assert column is not None
        if UNDECIDED in column.keys:
            groups.add(group.alias)
            kind = statement.domain.kind(column.attribute)
            is_null_apart = None in column.keys[: kind.regular] or column.keys[kind.regular]
            if kind.null_cell is not None and kind.null_cell == kind.outside_cell:
                shared |= set() if is_null_apart else {group.alias}
    (selection,) = statement.selections
    return Undecided(selection.condition.undecided, answers, frozenset(groups), frozenset(shared))


@dataclass(frozen=True)
class _Row:
    """A row of our answer: keys, answers, and tolerances."""

    keys: tuple[object, ...]
    answers: tuple[object, ...]
    tolerances: tuple[float, ...]
    are_means: tuple[bool, ...]

    @classmethod
    def of(cls, row, written):
        """Read a row of the frame; the interval of a mean without rows is infinite."""
        values = [_normal(value) for value in row.values()]
        keys = values[: len(written.groups)]
        numbers = values[len(written.groups) :]
        answers = []
        tolerances = []
        intervals = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
        for (answer, low, high), column in zip(intervals, written.answers, strict=True):
            ends = [end for end in (answer, low, high) if isinstance(end, float)]
            # From docs/coming-from-sql.md: REGR_R2 of a constant is NULL, where SQL has 1.
            is_constant = answer is None and column.aggregate.startswith("REGR_R2")
            answers.append(1.0 if is_constant else answer)
            is_coefficient = column.aggregate.startswith(("REGR_SLOPE", "REGR_INTERCEPT"))
            if is_coefficient and isinstance(answer, float) and low is None:
                tolerances.append(math.inf)  # the noise allows every coefficient
                continue
            # The interval contains the truth in 95% of releases, so in practice no noise is beyond
            # this tolerance.
            tolerances.append(0.02 + (3 * (max(ends) - min(ends)) if ends else 0))
        undefined_without_rows = ("AVG", "COVAR", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
        are_means = [
            answer.aggregate.startswith(undefined_without_rows) for answer in written.answers
        ]
        return cls(tuple(keys), tuple(answers), tuple(tolerances), tuple(are_means))

    def fits(self, labels, answers):
        """Return whether it has one of these keys in every column, and these answers."""
        has_keys = all(key in allowed for key, allowed in zip(self.keys, labels, strict=True))
        return has_keys and all(
            map(_is_close, self.answers, answers, self.tolerances, self.are_means)
        )

    def distance(self, answers):
        """Return the total distance from these answers."""
        return sum(
            abs(answer - expected)
            for answer, expected in zip(self.answers, answers, strict=True)
            if isinstance(answer, float) and isinstance(expected, float)
        )

    def is_empty(self):
        """Return whether it may belong to a group without rows."""
        return self.fits([{key} for key in self.keys], [None] * len(self.answers))


def _difference(statement, written, frame, rows):
    """Return what differs between our answers and those of DuckDB, or nothing."""
    ours = [_Row.of(row, written) for row in frame.to_dict("records")]
    width = len(written.groups)
    numbers = len(written.answers)
    for row in rows:
        keys = row[:width]
        answers = row[width : width + numbers]
        absent = row[width + numbers :]
        labels = [
            _labels(statement, group.attribute, key, is_absent=bool(flag))
            for group, key, flag in zip(written.groups, keys, absent, strict=True)
        ]
        if any(label is None for label in labels):
            continue  # the domain has no cell for this group
        fitting = [
            row_of_ours
            for row_of_ours in ours
            if row_of_ours.fits(labels, [_normal(answer) for answer in answers])
        ]
        if not fitting:
            return f"DuckDB has {row}, and we have {ours[:12]}"
        match = min(
            fitting,
            key=lambda row_of_ours: row_of_ours.distance([_normal(answer) for answer in answers]),
        )
        ours.remove(match)
    for row_of_ours in ours:
        if not row_of_ours.is_empty():
            return f"we have {row_of_ours}, and DuckDB has {rows[:12]}"
    return ""


def _labels(statement, attribute, key, *, is_absent):
    """Return how a key of DuckDB may be called in our answer; None if it has no cell."""
    kind = statement.domain.kind(attribute)
    if is_absent:
        return {None}
    if key == OUTSIDE:
        return None if kind.outside_cell is None else {kind.labels[kind.outside_cell]}
    if key is None:
        group = next(group for group in statement.groups if group.attribute == attribute)
        has_regular = None in group.keys[: kind.regular]
        if not has_regular and kind.null_cell is None:
            return None
        return {None, *(["other"] if kind.null_cell == kind.outside_cell else [])}
    return {_normal(key)}


def _normal(value):
    """Return a value of either side in one form."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    text = str(value)
    if re.fullmatch(r"\d{4}-\d\d-\d\d.*", text):
        return text[:10]
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        return float(text)
    except ValueError:
        return text


def _is_close(answer, expected, tolerance, is_mean):
    if expected is None:
        # From docs/coming-from-sql.md: "Its counts and sums are 0, where SQL has no row, or NULL;
        # its mean can be any number".
        return is_mean or answer is None or (isinstance(answer, float) and abs(answer) <= tolerance)
    return isinstance(answer, float) and abs(answer - float(str(expected))) <= tolerance


def main():
    """Compare as many statements as the command line says; exit with 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tally = run(arguments.statements, arguments.seed)
    print(
        f"accepted {tally.accepted}, of which {tally.released} are released with noise and "
        f"{tally.with_rows_left_out} leave out rows with values "
        f"outside the domain; refused {tally.refused.total()}; different {len(tally.different)}"
    )
    for reason, count in tally.refused.most_common():
        print(f"{count:6} {reason}")
    sys.exit(bool(tally.different))


if __name__ == "__main__":
    main()
