"""Export a finished release: build texts from its published files.

- a file for reviewers, with the topics of NIST SP 800-226 in our own words;
- an entry for the registry of deployments of differential privacy
  (github.com/opendp/deployments-registry-data);
- measurements in the format of mbi (private-pgm), as in docs/measurements.md;
- a notebook;
- metadata of the CSV files (CSVW) and the entry of a data set (DCAT-AP), in `_metadata`.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._error import equations, noise_name
from leastnoise._publication._manifest import Manifest, UnitFacts, escape_manifest, escape_markdown
from leastnoise._publication._metadata import FILL_IN, Publication, format_csvw, format_dcat
from leastnoise._release import Payment, Release
from leastnoise._texts import ENGLISH, TEMPLATES, Catalogue, table_title
from leastnoise._trusted.accounting import GDP, ZCDP, ApproxDP, PureDP, parameters_by_name
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Identity, dense
from leastnoise._trusted.measurements import Block
from leastnoise._workload import queries

REVIEW, _REGISTRY = (TEMPLATES / name for name in ("review.md", "registry.yml"))
_FLAVORS = {
    PureDP: "Pure DP",
    ApproxDP: "Approximate DP",
    ZCDP: "Zero-concentrated DP",
    GDP: "Gaussian DP",
}
_MBI_FORMAT = 1  # version of the exported measurements, on which other programs depend
_MOST_SEARCHED_TABLES = 200  # number of tables that the notebook considers for its chart
_MOST_MATRIX_ENTRIES = 2**22  # entries in all matrices of one table
_MBI_REQUIREMENT = (
    "mbi fits a distribution of rows, which needs measurements with noise of a known size. "
)


def _round_up_to_double(value: Fraction) -> float | int:
    """Return the smallest double that is at least a value.

    Above the largest double, return the smallest integer that is at least the value.
    """
    if value > sys.float_info.max:
        return math.ceil(value)
    nearest = float(value)
    if Fraction(nearest) >= value:
        return nearest
    return math.nextafter(nearest, math.inf)


def format_deployment(publication: Publication) -> str:
    """Return the release's entry for the OpenDP deployments registry, as YAML.

    Losses are rounded up to doubles. Texts are written as JSON, which is also YAML.
    """
    manifest = publication.manifest
    budget = publication.release.privacy.budget
    unit = manifest.privacy.unit
    payment = manifest.paid.payment
    plan = manifest.plan
    options = publication.release.options
    catalogue = _english_or_main_catalogue(publication.release)
    neighbours = f"Neighbouring tables differ in that {unit.in_words}."
    row_or_column = "a row"
    if unit.column is not None:
        row_or_column = f"the column {unit.column}"
    payment_number = FILL_IN
    if payment is not None:
        payment_number = f"Payment {payment.number} in the ledger of the data set."
    warning_line = ""
    if warning := _seed_warning(publication):
        warning_line = f"# {warning}\n"
    facts = {
        "written": manifest.written.isoformat(),
        "variant": _FLAVORS[type(budget)],
        "rules": " ".join(manifest.domain.rules),
        "unit": f"{FILL_IN} ({row_or_column})",
        "unit_details": " ".join(filter(None, [neighbours, unit.second_table])),
        "promise": manifest.privacy.promise,
        "payment": payment_number,
        "outside": f"{manifest.domain.rows_outside} {FILL_IN}: any tuning on the data.",
        "mechanisms": f"leastnoise, strategy {plan.strategy}: {plan.mechanism_in_words}.",
        "note": manifest.post_processing.note,
        "utility": _describe_utility(publication),
        "title": options.text("title", catalogue.language) or FILL_IN,
        "curator": options.text("agency", catalogue.language) or FILL_IN,
    }
    return _REGISTRY.read_text(encoding="utf-8") % {
        "warning": warning_line,
        "parameters": "\n".join(
            f"      {name}: {json.dumps(_round_up_to_double(number))}"
            for name, number in parameters_by_name(budget).items()
        ),
        **{name: json.dumps(text, ensure_ascii=False) for name, text in facts.items()},
    }


def _seed_warning(publication: Publication) -> str:
    """Return the warning that the noise came from a seed, or ""."""
    if publication.release.private:
        return ""
    return ENGLISH.say("not_private")


def _english_or_main_catalogue(release: Release) -> Catalogue:
    """Return the catalogue in English if it exists, or in the main language."""
    languages = release.options.languages
    return release.options.catalogue("en" if "en" in languages else languages[0])


def _table_titles(release: Release) -> dict[str, str]:
    """Return the display title of each table by its name; empty if none is set."""
    catalogue = _english_or_main_catalogue(release)
    if catalogue.names.is_empty:
        return {}
    return {product.name: table_title(product, catalogue) for product in release.workload}


def _describe_utility(publication: Publication) -> str:
    """Return a sentence with the typical standard error of each table."""
    tables = publication.manifest.answers.tables
    if isinstance(tables, str):
        return f"Standard errors are {tables}."
    titles = _table_titles(publication.release)
    entries = [table.entry for table in tables]
    errors = "; ".join(
        f"{titles.get(entry.name, entry.name)} {entry.rmse:.4g}" for entry in entries
    )
    return f"Typical standard errors: {errors}."


def format_mbi_measurements(publication: Publication) -> str:
    """Return the measured counts in the format of mbi, as JSON."""
    release = publication.release
    release.least_squares()  # raises if the measurements were chosen by their own noise
    measurements = release.measurements
    values = release.observation.values
    listed = []
    for counts in equations(measurements, None):
        if counts.block.limits is not None:
            raise InputError(
                _MBI_REQUIREMENT + "This release clipped sums at a threshold that it chose."
            )
        noisy_counts = counts.values(values[counts.index]) / measurements.grid
        listed.append(_mbi_measurement(counts.block, noisy_counts, math.sqrt(counts.variance)))
    if not listed:
        raise InputError(_MBI_REQUIREMENT + "This release measured only sums; also ask for counts.")
    domain = measurements.domain
    labels = {}
    for name in domain.names:
        labels[name] = [str(label) for label in domain.kind(name).labels]
    return json.dumps(
        {
            "format": _MBI_FORMAT,
            "private": release.private,
            "plan_digest": release.plan_digest,
            "noise": noise_name(measurements),
            "domain": {name: domain.kind(name).size for name in domain.names},
            "total": _mbi_total(release),
            "labels": labels,
            "measurements": listed,
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def _mbi_measurement(block: Block, noisy_counts: FloatArray, std: float) -> dict[str, Any]:
    """Return a measured table for mbi, with queries scaled to have equal noise."""
    measurement: dict[str, Any] = {
        "clique": list(block.attributes),
        "stddev": std,
        "noisy_measurement": (noisy_counts * block.scaling()).tolist(),
    }
    factors = block.factors
    if all(factor.operator == Identity(factor.operator.size) and factor.even for factor in factors):
        return measurement
    entries = sum(factor.operator.rows * factor.operator.size for factor in factors)
    if entries > _MOST_MATRIX_ENTRIES:
        raise refuse(
            f"the queries on {' x '.join(block.attributes)}",
            entries,
            f"of at most {_MOST_MATRIX_ENTRIES} entries in their matrices",
        )
    measurement["matrices"] = [
        (dense(factor.operator) * np.asarray(factor.scaling)[:, None]).tolist()
        for factor in factors
    ]
    return measurement


def _mbi_total(release: Release) -> dict[str, float] | None:
    """Return the estimated number of rows for mbi, or None if it is unknown.

    The number is unknown if no measurement determines it; mbi then derives it from the tables of
    cells.
    """
    try:
        (table,) = release.answer(queries(release.plan.domain))
    except InputError:
        return None
    return {"answer": table.answer.item(), "noise_std": table.noise_std.item()}


def format_notebook(publication: Publication) -> str:
    """Return a notebook that analyses the release, as JSON in nbformat 4.5."""
    cells = [
        {"id": f"cell-{number}", **cell}
        for number, cell in enumerate(_notebook_cells(publication), 1)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    value = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _notebook_cells(publication: Publication) -> Iterator[dict[str, Any]]:
    """Yield the cells of the notebook without their ids."""
    release = publication.release
    manifest: Manifest = escape_manifest(publication.manifest)
    directory = json.dumps(publication.directory, ensure_ascii=False)
    first = json.dumps(release.tables[0].id)
    yield _markdown_cell(f"# {FILL_IN}")
    if warning := _seed_warning(publication):
        yield _markdown_cell(f"**{warning}**")
    yield _markdown_cell(f"{manifest.privacy.promise}\n\n{manifest.intervals.method}")
    yield _code_cell(f"import leastnoise as ln\n\nrelease = ln.read_release({directory})\nrelease")
    yield _markdown_cell(
        "## One table, with its errors\n\n"
        "`low` to `high` is the interval, `noise_std` the standard error."
    )
    yield _code_cell(f"table = release.frame({first})\ntable")
    drawn_table = next(
        (table for table in release.tables[:_MOST_SEARCHED_TABLES] if table.labels), None
    )
    if drawn_table is not None:
        yield _code_cell(f"release.plot({json.dumps(drawn_table.id)})")
    if len(release.statistics):
        yield _markdown_cell("## Means, standard deviations, quantiles, distribution functions")
        yield _code_cell("release.statistics[0].frame()")
    if release.finding.answers_new_questions:
        yield _markdown_cell(
            "## A sum of its cells\n\n"
            "Answers share noise. Use `release.sum` for the error of a sum; do not add up errors."
        )
        yield _code_cell(f"release.sum({first})")
    limits = "\n".join(f"- {text}" for text in manifest.intervals.does_not_cover)
    yield _markdown_cell(f"## What the intervals leave out\n\n{limits}")


def _markdown_cell(text: str) -> dict[str, Any]:
    """Return a Markdown cell of a Jupyter notebook."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code_cell(text: str) -> dict[str, Any]:
    """Return a code cell of a Jupyter notebook."""
    return {
        "cell_type": "code",
        "metadata": {},
        "source": text.splitlines(keepends=True),
        "execution_count": None,
        "outputs": [],
    }


def _describe_cost(manifest: Manifest) -> str:
    """Return sentences on the privacy cost of the queries and of the guard."""
    cost = manifest.privacy.cost
    guard = manifest.paid.guard
    within = "within" if cost.within_budget else "NOT within"
    sentence = (
        f"The queries cost {cost.in_words}, computed from their integers and {within} what was "
        "planned for them."
    )
    if guard is None:
        return sentence
    return (
        f"{sentence} A guard counted rows first and cost {guard.charge} more, {guard.share} of "
        "the whole."
    )


def _describe_unit(unit: UnitFacts) -> str:
    """Return a sentence that states which rows form one privacy unit."""
    if unit.second_table is None:
        second_table = ""
    else:
        second_table = f" {unit.second_table}"
    if unit.column is None:
        return f"One row; nothing links rows of one person.{second_table}"
    limit = unit.max_per_cell
    if limit is None:
        cell_limit = ""
    else:
        cell_limit = f", and at most {limit.rows} in one cell of {' x '.join(limit.attributes)}"
    return (
        f"All rows of one value of the column '{unit.column}', of which at most {unit.max_rows} "
        f"are used{cell_limit}.{second_table}"
    )


def _describe_payment(payment: Payment | None) -> str:
    """Return a sentence about the payment in the ledger."""
    if payment is None:
        return "No ledger paid for this release."
    return (
        f"Payment {payment.number} in the ledger '{payment.ledger}' of the data set "
        f"'{payment.dataset}' (charge: {payment.charge}). The ledger refuses what exceeds the "
        "data set's budget, and was charged before noise was drawn."
    )


def _describe_errors(manifest: Manifest, titles: Mapping[str, str]) -> str:
    """Return one line of text per table with its typical standard error."""
    tables = manifest.answers.tables
    if isinstance(tables, str):
        return (
            f"Standard errors of {manifest.answers.number_of_tables} tables are {tables} "
            "(column rmse)."
        )
    units = {"row": "rows", "unit": "units"}
    lines = []
    for entry in (table.entry for table in tables):
        title = entry.name
        if entry.name in titles:
            title = escape_markdown(titles[entry.name])
        unit = units.get(entry.unit, "in the unit of the measure")
        lines.append(f"- {title}: {entry.rmse:.4g} {unit}, {entry.answers} answers")
    covers = f"{100 * manifest.intervals.level:g}%"
    return "\n".join([f"Typical standard error of an answer (intervals cover {covers}):\n", *lines])


def _capitalize(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _describe_choices(manifest: Manifest) -> str:
    """Return a sentence that states whether measurements depended on the data."""
    if manifest.plan.outcome is None:
        return "Not by the program: the plan was made without data."
    return (
        "Yes, by noisy steps that were paid for within the budget; the manifest has their outcome "
        "(plan.outcome)."
    )


def _describe_least_error(manifest: Manifest) -> str:
    """Return the expected error relative to the least possible error, as text."""
    times = manifest.expected_error.times_the_least_possible
    if times is None:
        return "Not known for this release."
    return f"At most {times:.3f} times the least possible error at this budget."


def format_review(publication: Publication) -> str:
    """Return questions of reviewers with the release's answers, as Markdown."""
    manifest: Manifest = escape_manifest(publication.manifest)
    privacy = manifest.privacy
    plan = manifest.plan
    budget = ", ".join(f"{name} = {value}" for name, value in privacy.parameters.items())
    # Names in this manifest are escaped, so titles must be looked up by escaped names.
    titles = {
        escape_markdown(name): title for name, title in _table_titles(publication.release).items()
    }
    warned = ""
    randomness = "The noise came from the operating system's generator."
    if warning := _seed_warning(publication):
        warned = f"\n\n**{warning}**"
        randomness = "NOT PRIVATE: the noise came from a seed. This release must not be published."
    public = "is taken as public"
    if privacy.neighbours == "add_remove":
        public = "is not taken as public"
    facts = {
        "written": manifest.written.isoformat(),
        "promise": privacy.promise,
        "neighbours": privacy.unit.in_words,
        "strategy": plan.strategy,
        "plan_digest": plan.digest,
        "number_of_answers": manifest.answers.number_of_answers,
        "number_of_tables": manifest.answers.number_of_tables,
        "note": manifest.post_processing.note,
        "rows_outside": manifest.domain.rows_outside,
        "digest": publication.release.plan_digest,
        "warned": warned,
        "definition": f"{_capitalize(privacy.definition)}, {budget}",
        "cost": _describe_cost(manifest),
        "unit": _describe_unit(privacy.unit),
        "public": public,
        "ledger": _describe_payment(manifest.paid.payment),
        "noise": _capitalize(plan.mechanism_in_words),
        "software": ", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
        "randomness": randomness,
        "chosen": _describe_choices(manifest),
        "rules": "\n".join(f"- {rule}" for rule in manifest.domain.rules),
        "errors": _describe_errors(manifest, titles),
        "least": _describe_least_error(manifest),
        "not_covered": "\n".join(f"- {text}" for text in manifest.intervals.does_not_cover),
        "contact": escape_markdown(manifest.options.text("contact"))
        or "No contact is named in the release.",
    }
    return REVIEW.read_text(encoding="utf-8") % facts


EXPORTS: Mapping[str, Callable[[Publication], str]] = {
    "review": format_review,
    "registry": format_deployment,
    "mbi": format_mbi_measurements,
    "notebook": format_notebook,
    "csvw": format_csvw,
    "dcat": format_dcat,
}
