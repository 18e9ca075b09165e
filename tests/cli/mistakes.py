"""Mistakes in the specs of messy files, and the command that reports each of them."""

import re
from typing import NamedTuple

import leastnoise as ln
from cli.messy import MESSY, stores


class Mistake(NamedTuple):
    """A mistake in a correct spec."""

    file: str
    puts: tuple[str, str]  # what stands there, and what it puts in its place
    # This is `plan` (refused or warned of), `check` (a page for the data holder), `refused` (reads
    # nothing) or `guard` (1% is spent).
    sees: str
    says: str  # a part of what it says; the column of whose rows, for `check`


_HALF = "fewer than half"
_COMMA = 'reads "1.5", and not "1,5"'
_POINTS = 'decimal = ","\nthousands = "."\n'
_HEIGHTS = 'decimals = { low = "140", high = "200", step = "0.5" }'
_SIX = 'low = "140", high = "200", step = "0.5"'
_TOWNS = 'categories = ["München", "Köln", "Saarbrücken"]'
_STORES = '{ file = "stores.csv", column = "name" }'
_AMOUNTS = '["-10000", "0", "9.99", "50", "10000"]'
_FORMAT = ', format = "%d.%m.%Y"'
_PAID = '["card", "cash"]\ntrim = true\n'
_SEX = 'categories = ["F", "M"]'

MISTAKES = {
    "decimal commas not said": Mistake("german", (_POINTS, ""), "plan", _COMMA),
    "decimal and thousands swapped": Mistake(
        "german", (_POINTS, 'decimal = "."\nthousands = ","\n'), "plan", _COMMA
    ),
    "thousands not said": Mistake("german", ('thousands = "."\n', ""), "check", "Umsatz: "),
    "a currency not said": Mistake("german", ('currency = ["€"]\n', ""), "check", "Umsatz: "),
    "a null not said": Mistake(
        "german", ('null = ["k. A."]', 'null = ["n/a"]'), "check", "Umsatz: "
    ),
    "the wrong encoding": Mistake(
        "german", ('encoding = "cp1252"\n', ""), "refused", "must be text in UTF-8"
    ),
    "the wrong delimiter": Mistake(
        "german", ('delimiter = ";"', 'delimiter = ","'), "refused", 'delimiter = ";"'
    ),
    "the wrong column": Mistake(
        "german", ('column = "Umsatz in €"', 'column = "Ort"'), "guard", _HALF
    ),
    "the format of dates not said": Mistake("german", (_FORMAT, ""), "guard", _HALF),
    "months for days": Mistake("german", (_FORMAT, ', format = "%m.%d.%Y"'), "check", "Datum: "),
    "towns as another language has them": Mistake(
        "german", (_TOWNS, 'categories = ["Munich", "Cologne", "Saar"]'), "guard", _HALF
    ),
    "the wrong year": Mistake(
        "retail",
        ('"2024-01-01", to = "2024-12-31"', '"2014-01-01", to = "2014-12-31"'),
        "guard",
        _HALF,
    ),
    "half of the year": Mistake(
        "retail", ('to = "2024-12-31"', 'to = "2024-08-31"'), "check", "ordered_at: "
    ),
    "case": Mistake("retail", ("ignore_case = true\n", ""), "check", "payment: "),
    "blanks": Mistake("retail", ("trim = true\n", ""), "check", "payment: "),
    "a category with a blank": Mistake(
        "retail", (_PAID, '["card ", "cash"]\n'), "plan", "a category with blanks around it"
    ),
    "two cases of one category": Mistake(
        "retail",
        (f"{_PAID}ignore_case = true", '["card", "cash", "Cash"]'),
        "plan",
        "differ only in case",
    ),
    "cents for amounts": Mistake(
        "retail", (_AMOUNTS, '["0", "0.5", "1"]'), "plan", "almost all whole numbers"
    ),
    "a list from the data": Mistake(
        "retail", (_STORES, '{ file = "retail.csv", column = "store" }'), "plan", "was not paid for"
    ),
    "a level with a gap": Mistake(
        "retail", (_STORES, '["Worms", "Kiel"]'), "plan", "must give every cell a group"
    ),
    "a column misspelt": Mistake(
        "survey", ("[domain.height]", "[domain.heigth]"), "refused", "Did you mean 'height'?"
    ),
    "whole heights": Mistake(
        "survey", (_HEIGHTS, "integers = [140, 200]"), "plan", "has whole numbers only"
    ),
    "metres for centimetres": Mistake(
        "survey", (_SIX, 'low = "1.4", high = "2", step = "0.005"'), "plan", "between 1.4"
    ),
    "letters of the other case": Mistake(
        "survey", (_SEX, 'categories = ["f", "m"]'), "guard", _HALF
    ),
    "codes for letters": Mistake("survey", (_SEX, "size = 2"), "guard", _HALF),
    "Booleans for letters": Mistake("survey", (_SEX, "categories = [true, false]"), "guard", _HALF),
    "bounds too narrow": Mistake(
        "survey", ("integers = [15, 94]", "integers = [15, 64]"), "check", "age: "
    ),
    "bounds the wrong way round": Mistake(
        "survey", ("integers = [15, 94]", "integers = [94, 15]"), "plan", "low must be below high"
    ),
}


def drafted(folder, run, name, epsilon, rows):
    """Return the spec of a messy file, drafted by `init` and filled in."""
    data = MESSY[name].make(folder, rows)
    stores(folder)
    run.succeeds("init", data.name, *MESSY[name].init)
    spec = data.with_suffix(".toml")
    spec.write_text(MESSY[name].filled(spec.read_text(encoding="utf-8"), epsilon), encoding="utf-8")
    return spec


def wrong_answers(spec, name):
    """Return the tables of a nearly noiseless release that differ from the exact counts."""
    tables = ln.read_release(spec.parent / "out").tables
    wrong_tables = []
    for table, counts in (
        MESSY[name].tables(spec.with_suffix(".parquet" if name == "survey" else ".csv")).items()
    ):
        answers = zip(map(str, tables[table].labels[0]), tables[table].answer.round(), strict=True)
        if {label: answer for label, answer in answers if answer} != {
            label: count for label, count in counts.items() if count
        }:
            wrong_tables.append(table)
    return wrong_tables


def write_mistake(spec, name):
    """Write the spec with a mistake and a realistic budget to a file of its own."""
    before, after = MISTAKES[name].puts
    text = re.sub(r'(?m)^epsilon = "\d+"', 'epsilon = "1"', spec.read_text(encoding="utf-8"))
    assert before in text
    wrong_spec = spec.with_name("wrong.toml")
    wrong_spec.write_text(text.replace(before, after), encoding="utf-8")
    spec.with_suffix(".ledger").unlink(missing_ok=True)
    return wrong_spec


def badly_read(page):
    """Return the lines of `check` on columns of which too few rows match.

    A column is read badly where under 95% of the rows match without being counted as other, or
    over 5% lie outside.
    """
    lines = []
    for line in (
        line.removeprefix("PRIVATE").strip()
        for line in page.splitlines()
        if " outside" in line and " matched" in line
    ):
        matched, null, outside = (float(part.split("%")[0]) for part in line.split("(")[1:4])
        if matched + null < 95 or outside > 5:
            lines.append(line)
    return lines


def spent(spec):
    """Return what was paid."""
    ledger = spec.with_suffix(".ledger")
    return (
        [str(entry.charge) for entry in ln.Ledger.open(ledger).entries()] if ledger.exists() else []
    )
