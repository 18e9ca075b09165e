"""``leastnoise answer``: further answers from a release that is there already; they cost nothing."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leastnoise._check import InputError, did_you_mean
from leastnoise._cli._opened import opened
from leastnoise._cli._output import number, show_json, show_table, whole

if TYPE_CHECKING:
    from leastnoise._domain import Domain
    from leastnoise._release import Release
    from leastnoise._workload import QuerySet

_MOST_SHOWN = 1000
_NEEDED = "Say what to answer: --cells NAME, --ranges NAME=LOW..HIGH, --cdf NAME, --quantiles NAME=0.25,0.5,0.75, --means MEASURE "
_NEEDED += "or --covariances TABLE."
_NOT_ROUNDED = "These answers are not rounded, and none is left out, as they are in the files of this release. Add up first, then round."


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--ranges",
    multiple=True,
    metavar="NAME=LOW..HIGH",
    help="A range of an attribute, both ends included: numbers, or dates such as month=2024-01..2024-03.",
)
@click.option("--cells", multiple=True, metavar="NAME", help="Every value of an attribute, or every group of a level: store:region.")
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only rows with this value, or of this group of a level; again: or.",
)
@click.option("--sum", "measure", metavar="MEASURE", help="Sum a measure in place of counting rows.")
@click.option("--cdf", "distribution", metavar="NAME", help="The share of rows up to each value of a number, by the --cells.")
@click.option("--quantiles", metavar="NAME=SHARE,...", help="Quantiles of a number, such as age=0.25,0.5,0.75, by the --cells.")
@click.option("--means", metavar="MEASURE", help="Means of a measure, by the --cells.")
@click.option("--covariances", metavar="TABLE", help="Of the noise in every two answers of a table, by id or name.")
@click.option("--level", type=float, help="Coverage of the intervals.  [default: that of the release]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def answer(release: Path, as_json: bool, level: float | None, **asked: Any) -> None:  # noqa: FBT001 - click passes flags by name
    """Further answers from a finished release, each with its exact error.

    RELEASE is the directory that `leastnoise release` wrote. Costs nothing and reads no data: answers follow from the measurements in the
    release, and what these do not determine is refused.
    """
    from leastnoise._release import notices_of_all

    found = opened(release)
    heading, rows = _answered(found, found.level if level is None else level, asked)
    notes = [] if found.private else ["NOT PRIVATE: the noise of this release came from a seed."]
    notes += notices_of_all(found)
    if found.options.rounds:
        notes.append(_NOT_ROUNDED)
    if as_json:
        show_json({"level": found.level if level is None else level, "answers": rows, "notes": notes})
        return
    if len(rows) > _MOST_SHOWN:
        click.echo(f"The first {_MOST_SHOWN} of {whole(len(rows))} answers; --json gives all.")
    names = list(rows[0])
    shown = list(zip(*(_written([row[name] for row in rows[:_MOST_SHOWN]]) for name in names), strict=True))
    columns = [(name, "right" if isinstance(value, float) else "left") for name, value in rows[0].items()]
    show_table(heading, columns if names else [], shown)
    for note in notes:
        click.echo(click.wrap_text(note, 100))


def _written(values: Sequence[Any]) -> list[str]:
    """A column for people: whole numbers as such, shares that were asked for as they were, else four digits that count."""
    numbers = [value for value in values if isinstance(value, float)]
    form = ",.0f" if all(value.is_integer() for value in numbers) else ""
    if all(0 < value == round(value, 3) < 1 for value in numbers):
        form = "g"
    return [(format(value, form) if form else number(value)) if isinstance(value, float) else str(value or "") for value in values]


def _answered(release: "Release", level: float, asked: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The heading, and one record an answer."""
    kinds = [name for name in ("distribution", "quantiles", "means", "covariances") if asked[name]]
    groups = asked["means"] or asked["quantiles"] or asked["distribution"]
    if asked["ranges"] or asked["measure"] or (asked["cells"] and not groups) or (asked["where"] and not kinds):
        kinds.append("counts")
    if len(kinds) != 1:
        raise InputError(_NEEDED if not kinds else "One kind of answer can be asked for at a time. " + _NEEDED)
    where, by = _where(release.plan.domain, asked["where"]), _by(release.plan.domain, asked["cells"])
    if asked["means"]:
        if where:
            raise InputError("Means cannot be restricted with --where; say --cells NAME for means by the values of an attribute.")
        return _means(release, level, asked["means"], by)
    if asked["covariances"]:
        return _covariances(release, asked["covariances"])
    if asked["distribution"]:
        return _cdf(release, level, asked["distribution"], where, by)
    if asked["quantiles"]:
        return _quantiles(release, level, asked["quantiles"], where, by)
    return _counts(release, level, asked, where, by)


def _counts(
    release: "Release", level: float, asked: Mapping[str, Any], where: Mapping[str, list[str]], by: Mapping[str, "QuerySet"]
) -> tuple[str, list[dict[str, Any]]]:
    from leastnoise._workload import predicates, queries, ranges

    domain = release.plan.domain
    sets: dict[str, Any] = {name: predicates([labels]) for name, labels in where.items()}
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    for text in asked["ranges"]:
        name, ends = _named(domain, "--ranges", text, "NAME=LOW..HIGH")
        low, dots, high = ends.partition("..")
        if not dots:
            raise InputError(f"--ranges must be NAME=LOW..HIGH, such as age=20..39; got {text!r}.")
        pairs.setdefault(name, []).append((_end(domain, name, low), _end(domain, name, high)))
    for name, wanted in [*((name, ranges(ends_of)) for name, ends_of in pairs.items()), *by.items()]:
        if name in sets:
            raise InputError(f"{name} is asked about twice; use one of --cells, --ranges and --where for it.")
        sets[name] = wanted
    (table,) = release.answer(queries(domain, sets, sum=asked["measure"]), level=level)
    numbers = table.numbers()
    names = ("answer", "noise_std", "approximation_std", "low", "high")
    rows: list[dict[str, Any]] = [{"cell": cell} for cell in table.cell_names()]
    for column in [column for column in names if column in numbers]:
        for row, value in zip(rows, numbers[column].tolist(), strict=True):
            row[column] = None if math.isnan(value) else float(value)
    return f"{(asked['measure'] and 'sums of ' + asked['measure']) or 'counts'}, {100 * level:g}% intervals", rows


def _cdf(
    release: "Release", level: float, name: str, where: Mapping[str, list[str]], by: Mapping[str, "QuerySet"]
) -> tuple[str, list[dict[str, Any]]]:
    from leastnoise._estimate import cdf

    found = cdf(release, name, where=where, by=by, level=level)
    rows = []
    for place, labels in enumerate(product(*found.labels)):
        curves = [curve.reshape(-1, len(found.values))[place].tolist() for curve in (found.share, found.low, found.high)]
        each = zip(found.values.tolist(), *curves, strict=True)
        rows += [{**_group(found.by, labels), name: value, "share": share, "low": low, "high": high} for value, share, low, high in each]
    return f"share of rows up to each {name}, a {100 * level:g}% band that holds everywhere at once", rows


def _quantiles(
    release: "Release", level: float, text: str, where: Mapping[str, list[str]], by: Mapping[str, "QuerySet"]
) -> tuple[str, list[dict[str, Any]]]:
    from leastnoise._estimate import quantiles

    name, listed = _named(release.plan.domain, "--quantiles", text, "NAME=SHARE,...")
    try:
        shares = [float(one) for one in listed.split(",")]
    except ValueError:
        raise InputError(f"--quantiles must be NAME=SHARE,... with numbers, such as age=0.25,0.5,0.75; got {text!r}.") from None
    found = quantiles(release, name, shares, where=where, by=by, level=level)
    rows = [{**_group((*by,), one.group), "share": one.share, name: one.value, "low": one.low, "high": one.high} for one in found]
    return f"quantiles of {name}, {100 * level:g}% intervals", rows


def _group(names: Sequence[str], labels: Sequence[str | int]) -> dict[str, Any]:
    """The group of a row, where there are groups."""
    return {"cell": ", ".join(f"{name}={label}" for name, label in zip(names, labels, strict=True))} if names else {}


def _covariances(release: "Release", key: str) -> tuple[str, list[dict[str, Any]]]:
    matrix, names = release.covariance(key).tolist(), release.tables[key].cell_names()
    pairs = [(first, second) for first in range(len(names)) for second in range(first, len(names))]
    rows = [{"cell": names[first], "other_cell": names[second], "covariance": matrix[first][second]} for first, second in pairs]
    return f"covariances of the noise in {release.tables[key].name}, each pair once", rows


def _means(release: "Release", level: float, measure: str, by: Mapping[str, "QuerySet"]) -> tuple[str, list[dict[str, Any]]]:
    from leastnoise._estimate import means

    if not release.plan.domain.measures:
        raise InputError(
            f"--means must be a measure that the release sums, and it sums none; got {measure!r}. A mean needs counts and sums: "
            f"ask for them before a release, with [[workload]] means = {{ of = ... }}. Of a number that is counted ask --quantiles."
        )
    found = means(release, measure, by=by, level=level)
    rows = [{"cell": cell, "mean": mean, "low": low, "high": high} for cell, mean, low, high in found.rows()]
    return f"means of {measure}, {100 * level:g}% intervals", rows


def _where(domain: "Domain", texts: Sequence[str]) -> dict[str, list[str]]:
    from leastnoise._workload import cells_of

    found: dict[str, list[str]] = {}
    for text in texts:
        within = _level_of(domain, text.partition("=")[0])
        name, label = (within[0], text.partition("=")[2]) if within else _named(domain, "--where", text, "NAME=VALUE")
        found.setdefault(name, []).extend(map(str, cells_of(domain.kind(name), {within[1]: label})) if within else [label])
    return found


def _by(domain: "Domain", texts: Sequence[str]) -> dict[str, "QuerySet"]:
    """What --cells says, as tables are called: an attribute, or store:region for a level of it."""
    from leastnoise._workload import groups_of, level

    named = [(text, _level_of(domain, text)) for text in texts]
    return groups_of(domain, [text if found is None else {found[0]: level(found[1])} for text, found in named], "--cells")


def _level_of(domain: "Domain", text: str) -> tuple[str, str] | None:
    """The attribute and the level that a name such as store:region means; None for an attribute of this name."""
    fitting = [name for name in domain.names if text.startswith(f"{name}:")]
    return None if text in domain.names or not fitting else (max(fitting, key=len), text[len(max(fitting, key=len)) + 1 :])


def _named(domain: "Domain", option: str, text: str, form: str) -> tuple[str, str]:
    """The attribute and the rest of NAME=...; of attributes with such a sign in their name the longest that fits."""
    fitting = [name for name in domain.names if text.startswith(f"{name}=")]
    if not fitting:
        near = did_you_mean(text.partition("=")[0], domain.names)
        raise InputError(f"{option} must be {form} with one of {', '.join(domain.names)}; got {text!r}." + (f" {near}" if near else ""))
    name = max(fitting, key=len)
    return name, text[len(name) + 1 :]


def _end(domain: "Domain", name: str, text: str) -> Any:
    """An end of a range: a period of dates, or else a number."""
    from leastnoise._check import exact
    from leastnoise._domain import Dates

    if isinstance(domain.kind(name), Dates):
        return text.strip()
    value = exact(f"an end of a range on {name}", text.strip())
    return int(value) if value.denominator == 1 else value
