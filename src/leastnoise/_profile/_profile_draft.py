"""Draft a spec with the bounds and categories of a paid profile."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from leastnoise._profile._column_cells import FIRST_YEAR, MeasuredColumn
from leastnoise._profile._findings import TAIL_SHARE, ColumnFindings, ProfileFindings
from leastnoise._profile._request import SPEC_FILE, ProfilePlan, format_section
from leastnoise._profile._share_intervals import EstimateInterval
from leastnoise._profile._unit_sizes import COVERED_UNITS
from leastnoise._session import Ledger
from leastnoise._spec import (
    escape_comment,
    format_toml_key,
    format_toml_value,
    path_for_spec,
)
from leastnoise._trusted.accounting import Charge
from leastnoise._trusted.check import exact_positive, number_text

DRAFT_FILE = "spec.toml"
_MOST_WHOLE_CELLS = 200  # a wider range of whole numbers is drafted in bins
_DRAFTED_BINS = 50  # bins of a drafted attribute, which users are expected to edit
_MOST_UNIT_BINS = 100  # bins of width 1 in a draft, which users are expected to edit
_MOST_MONTHLY_YEARS = 20  # at most 240 months; a longer range is drafted by year
_BUDGET_DIGITS = 4  # significant digits of a drafted budget
_MU_SQUARED_OF_PURE = Fraction("1.57")  # pi / 2: mu squared over epsilon squared, small epsilon
_PAID_HEAD = """\
# A spec for leastnoise, drafted from a profile. Its bounds and categories come from the noisy
# answers in this folder, which are paid, so you may publish this file. Every comment says how a
# line was derived.
"""
_SEEDED_HEAD = """\
# NOT PRIVATE: a spec for leastnoise, drafted from a profile whose noise came from a seed. Its
# bounds and categories protect nobody. Publish neither this file nor a release of it; use it only
# for tests.
"""
_HEAD = """\
# Correct a line only from public knowledge. To publish:
#
#     leastnoise plan {path}
#     leastnoise release {path} --out release
#
# The bounds of numbers and dates are ends of cells of {spec}. Without the noise, at most {tail:.1%}
# of the rows are below, and at most the same share is above; these count in the first or the last
# cell. Each bound has the error of this share next to it (95%).
#
# complete = true in an attribute states that no value of it is missing or outside. Some plans are
# then more accurate, but a row without such a value is in no table of any attribute. State it only
# if it is public knowledge, such as a required answer in the questionnaire.
"""
_END = """
[[workload]]
marginals = { ways = 1 }      # a table for each attribute; ways = 2: for each pair;
                              # upto = 2: for up to two attributes

[plan]
strategy = "auto"             # the least expected error; `leastnoise compare` lists the others
guard = "1/100"               # this share of the budget first counts the rows that are used;
                              # with too few rows, the release stops before it pays the rest

[output]
level = 0.95                  # of the intervals
"""


def draft_text(plan: ProfilePlan, findings: ProfileFindings, ledger: Ledger | None) -> str:
    """Return the text of a spec with the bounds and categories of a profile.

    Args:
        plan: the tables of the profile.
        findings: the findings about the columns.
        ledger: the ledger that paid; None for a seeded profile.
    """
    draft_path = plan.folder / DRAFT_FILE
    path = escape_comment(str(draft_path))
    budget_left = None if ledger is None else ledger.left()
    head = _SEEDED_HEAD if ledger is None else _PAID_HEAD
    parts = [head, _HEAD.format(path=path, spec=SPEC_FILE, tail=TAIL_SHARE)]
    if source := plan.source_settings():
        parts.append(format_section("source", source))
    parts += ["\n[privacy]\n", *_budget_lines(plan, budget_left)]
    parts += _unit_lines(plan, findings)
    by_column = findings.by_column()
    for column in plan.columns.listed:
        if column.name in by_column:
            parts += _column_lines(by_column[column.name])
        elif column.name != plan.request.unit_column:
            parts.append(_left_out_comment(column.name, column.left_out))
    parts.append(_END)
    if ledger is not None:
        settings = {"path": path_for_spec(ledger.path, draft_path), "dataset": ledger.dataset}
        parts.append(format_section("ledger", settings))
    return "".join(parts)


def _unit_lines(plan: ProfilePlan, findings: ProfileFindings) -> Iterator[str]:
    """Yield lines of TOML that state the privacy unit and its row limit."""
    sizes = findings.unit_sizes
    setting = plan.unit_setting()
    if sizes is None:
        yield f"unit = {format_toml_value(setting)}\n"
        return
    if not sizes.has_units:
        yield f"unit = {format_toml_value(setting)}     # the number of units cannot be\n"
        yield "# distinguished from noise, so choose max_rows from public knowledge\n"
        return
    effect = sizes.draft_effect
    setting = {**setting, "max_rows": effect.max_rows}
    yield f"unit = {format_toml_value(setting)}     # max_rows from the profile: about\n"
    yield (
        f"# {COVERED_UNITS:.0%} of the units have at most that many rows. "
        f"{_format_share(effect.cut_units)} of the\n"
    )
    yield f"# units have more, and {_format_share(effect.cut_rows)} of the rows are not used.\n"


def _format_share(share: EstimateInterval | None) -> str:
    """Return a share and the ends of its interval as text."""
    if share is None:
        return "an unknown share"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def _budget_lines(plan: ProfilePlan, budget_left: Charge | None) -> Iterator[str]:
    """Yield TOML lines for the budget that is left in the ledger or the profile."""
    if budget_left is not None and budget_left.mu_squared > _pure_mu_squared(budget_left.epsilon):
        mu_squared = round_down(Fraction(budget_left.mu_squared))
        yield f'mu_squared = "{mu_squared}"     # what the ledger has left, with Gaussian noise\n'
    elif budget_left is not None and budget_left.epsilon > 0:
        yield f'epsilon = "{round_down(budget_left.epsilon)}"     # what the ledger has left\n'
    else:
        epsilon = number_text(exact_positive("epsilon", plan.request.epsilon))
        yield f'epsilon = "{epsilon}"     # the ledger has nothing left: raise its budget\n'
        yield "# with `leastnoise ledger change FILE`, or choose a smaller budget here\n"
        if plan.request.delta is not None:
            yield f'delta = "{plan.request.delta}"\n'


def _pure_mu_squared(epsilon: Fraction) -> Fraction:
    """Return mu squared for pure epsilon; an approximation for small epsilon."""
    return _MU_SQUARED_OF_PURE * epsilon**2


def round_down(value: Fraction) -> str:
    """Return a positive number, rounded down to four significant digits, as text.

    >>> round_down(Fraction("0.0560987")), round_down(Fraction(2))
    ('0.05609', '2')
    """
    exponent = _BUDGET_DIGITS - 1 - math.floor(math.log10(value))
    scale = Fraction(10) ** exponent
    return number_text(Fraction(math.floor(value * scale)) / scale)


def _left_out_comment(name: str, reason: str) -> str:
    """Return a TOML comment with the reason why a column was left out."""
    column = escape_comment(format_toml_value(name))
    return f"\n# The column {column} was left out: {escape_comment(reason)}.\n"


def _column_lines(findings: ColumnFindings) -> list[str]:
    """Return lines of TOML: a column's table [domain.NAME], or why it has none."""
    measured = findings.measured
    name = measured.column.name
    if not findings.fits_type:
        return [_left_out_comment(name, _misfit_reason(findings))]
    if findings.is_too_noisy:
        count = math.ceil(findings.threshold)
        return [
            _left_out_comment(name, f"noise hides it: no cell clearly has more than {count:,} rows")
        ]
    lines = [f"\n[domain.{format_toml_key(measured.column.attribute)}]\n"]
    if measured.column.attribute != name:
        lines.append(f"column = {format_toml_value(name)}\n")
    if measured.is_number:
        lines += _number_lines(findings)
    elif measured.kind == "date":
        lines += _date_lines(findings)
    else:
        lines += _category_lines(findings)
    if findings.missing.low > 0:
        percent = f"{findings.missing_share.value:.1%}"
        lines.append(f'null = "cell"     # about {percent} of the values are missing\n')
    return lines


def _misfit_reason(findings: ColumnFindings) -> str:
    """Return the reason why most values of a column do not fit its table."""
    percent = f"{findings.unreadable_share.value:.0%}"
    if findings.measured.kind == "date":
        return (
            f"about {percent} of its values are not dates of the form 2024-05-01; state their "
            "format"
        )
    if findings.measured.is_searched:
        return (
            f"about {percent} of its values are rare texts. If it has a code list, list its "
            "categories"
        )
    if findings.measured.is_number:
        misfit = "not numbers"
    else:
        misfit = "not among the counted codes"
    return (
        f"about {percent} of its values are {misfit}; profile with --delta to find its categories, "
        "or list them"
    )


def _number_lines(findings: ColumnFindings) -> Iterator[str]:
    """Yield lines of TOML for a column of numbers: integers, bins or edges."""
    edges = findings.measured.edges
    first, last = findings.range_cells
    low, high = findings.bounds
    note = f"{_range_note(findings)}\n"
    if findings.is_whole and high - low < _MOST_WHOLE_CELLS:
        yield f"integers = [{low}, {max(high, low + 1)}]{note}"
        yield 'rounding = "nearest"\n'
    elif _is_skewed(findings, low, high):
        round_edges = [
            low,
            *(edge for edge in edges[first + 1 : last + 1] if _is_round(edge)),
            high,
        ]
        texts = [number_text(edge) for edge in sorted(set(round_edges))]
        yield f"edges = {format_toml_value(texts)}{note}"
    else:
        bins = {
            "low": _toml_number(low),
            "high": _toml_number(high),
            "count": _bin_count(low, high),
        }
        yield f"bins = {format_toml_value(bins)}{note}"
    yield 'outside = "clip"\n'


def _range_note(findings: ColumnFindings) -> str:
    """Return a TOML comment on the source and the error of drafted bounds."""
    below = math.ceil(findings.rows_below.high)
    above = math.ceil(findings.rows_above.high)
    return f"     # from the profile; at most about {below:,} rows are below, and {above:,} above"


def _toml_number(value: Fraction) -> Any:
    """Return a number as an integer or, if it is a fraction, as text."""
    return int(value) if value.denominator == 1 else number_text(value)


def _bin_count(low: Fraction, high: Fraction) -> int:
    """Return the number of bins; bins have width 1 if that gives 10 to 100 bins."""
    width = high - low
    if width.denominator == 1 and 10 <= width <= _MOST_UNIT_BINS:
        return int(width)
    return _DRAFTED_BINS


def _is_skewed(findings: ColumnFindings, low: Fraction, high: Fraction) -> bool:
    """Return whether with equal bins half of the rows would be in a single bin."""
    if not findings.quartiles or high <= low:
        return False
    width = float(high - low) / _DRAFTED_BINS
    first_quartile, _, third_quartile = findings.quartiles
    return third_quartile.value - first_quartile.value < width


def _is_round(edge: Fraction) -> bool:
    """Return whether an edge is a round number, and not the end of a narrow cell."""
    return edge < 1 or edge.denominator <= 2


def _date_lines(findings: ColumnFindings) -> Iterator[str]:
    """Yield lines of TOML for a column of dates, from first to last year."""
    first, last = (FIRST_YEAR + position for position in findings.range_cells)
    by = "month" if last - first < _MOST_MONTHLY_YEARS else "year"
    dates = {"from": f"{first}-01-01", "to": f"{last}-12-31", "by": by}
    zone = findings.measured.settings["dates"].get("zone")
    if zone is not None:
        dates["zone"] = zone
    yield f"dates = {format_toml_value(dates)}{_range_note(findings)}\n"
    yield 'outside = "clip"\n'


def _category_lines(findings: ColumnFindings) -> Iterator[str]:
    """Yield lines of TOML with the categories that were found to be occupied."""
    measured: MeasuredColumn = findings.measured
    if measured.kind == "truth":
        yield "categories = [true, false]\n"
        return
    labels = [findings.labels[position] for position in findings.shown_cells]
    yield (
        f"categories = {format_toml_value(labels)}     # found by the profile; one with fewer than "
        f"about {math.ceil(findings.threshold):,} rows is not seen\n"
    )
    if measured.settings.get("ignore_case"):
        yield "ignore_case = true\n"
    # A category may be called "other", like the cell of all other values.
    has_other = "other" in [label.lower() for label in labels]
    yield f'outside = "{"cell" if has_other else "other"}"\n'
