"""From files as people have them to a right release, by `init`, one spec and exact counts."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leastnoise as ln
from cli.messy import MESSY, stores
from leastnoise import read_release

Run = Callable[..., Any]
ROWS = int(os.environ.get("LEASTNOISE_MESSY", "3000"))


def filled(folder: Path, run: Run, name: str, epsilon: str = "1", rows: int = ROWS) -> Path:
    """The spec of a messy file, drafted by `init` and filled."""
    messy = MESSY[name]
    data = messy.make(folder, rows)
    stores(folder)
    drafted = run("init", data.name, *messy.init)
    assert drafted.code == 0, drafted.err
    spec = data.with_suffix(".toml")
    spec.write_text(messy.filled(spec.read_text(encoding="utf-8"), epsilon), encoding="utf-8")
    return spec


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_becomes_a_right_release(folder: Path, run: Run, name: str) -> None:
    spec = filled(folder, run, name, epsilon="200")  # noise of nothing: what is tested is the way from rows to counts
    planned = run("plan", spec.name)
    assert planned.code == 0, planned.err
    checked = run("check", spec.name)
    assert "outside" in checked.out
    assert f"rows used      {ROWS:,} (100.0%)" in checked.out, checked.out
    released = run("release", spec.name, "--out", "out")
    assert released.code == 0, released.err
    made = read_release("out")
    wanted = MESSY[name].tables(spec.with_suffix(".parquet" if name == "survey" else ".csv"))
    for table, counts in wanted.items():
        found = made.tables[table]
        labels = [str(label) for label in found.labels[0]]
        assert {label: round(float(answer)) for label, answer in zip(labels, found.answer, strict=True) if round(float(answer))} == {
            label: count for label, count in counts.items() if count
        }, table


# What is put in the place of what in a right spec, and who sees it: `plan` (a refusal or a warning), `check` (a page for the data's
# holder), `refused` (a release that reads nothing), `guard` (1% is spent).
MISTAKES = {
    "decimal commas not said": ("german", 'decimal = ","\nthousands = "."\n', "", "plan", 'reads "1.5", and not "1,5"'),
    "thousands not said": ("german", 'thousands = "."\n', "", "check", "Umsatz: "),
    "a currency not said": ("german", 'currency = ["€"]\n', "", "check", "Umsatz: "),
    "a null not said": ("german", 'null = ["k. A."]', 'null = ["n/a"]', "check", "Umsatz: "),
    "the wrong encoding": ("german", 'encoding = "cp1252"\n', "", "refused", "must be text in UTF-8"),
    "the wrong delimiter": ("german", 'delimiter = ";"', 'delimiter = ","', "refused", "has no column"),
    "the format of dates not said": ("german", ', format = "%d.%m.%Y"', "", "guard", "fewer than half"),
    "towns as another language has them": ("german", '["München", "Köln", "Saarbrücken"]', '["Munich", "Cologne", "Saar"]', "guard", ""),
    "the wrong year": ("retail", '"2024-01-01", to = "2024-12-31"', '"2014-01-01", to = "2014-12-31"', "guard", "fewer than half"),
    "case": ("retail", "ignore_case = true\n", "", "check", "payment: "),
    "blanks": ("retail", "trim = true\n", "", "check", "payment: "),
    "a category with a blank": (
        "retail",
        '["card", "cash"]\ntrim = true\n',
        '["card ", "cash"]\n',
        "plan",
        "a category with blanks around it",
    ),
    "two cases of one category": ("retail", '"cash"]\ntrim = true\nignore_case = true', '"cash", "Cash"]', "plan", "differ by case"),
    "cents for amounts": ("retail", '["-10000", "0", "9.99", "50", "10000"]', '["0", "0.5", "1"]', "plan", "nearly all whole numbers"),
    "a list from the data": (
        "retail",
        'file = "stores.csv", column = "name"',
        'file = "retail.csv", column = "store"',
        "plan",
        "nobody paid",
    ),
    "a level with a gap": ("retail", 'value = "region" }\n', 'value = "region" }\n', "plan", "must give every cell a group"),
    "a column misspelt": ("survey", "[domain.height]", "[domain.heigth]", "refused", "Did you mean 'height'?"),
    "whole heights": (
        "survey",
        'decimals = { low = "140", high = "200", step = "0.5" }',
        "integers = [140, 200]",
        "plan",
        "whole numbers alone",
    ),
    "metres for centimetres": (
        "survey",
        'low = "140", high = "200", step = "0.5"',
        'low = "1.4", high = "2", step = "0.005"',
        "plan",
        "between 1.4",
    ),
    "codes for letters": ("survey", 'categories = ["F", "M"]', "size = 2", "guard", "fewer than half"),
    "bounds the wrong way round": ("survey", "integers = [15, 94]", "integers = [94, 15]", "plan", "low must be below high"),
    "Booleans for letters": ("survey", 'categories = ["F", "M"]', "categories = [true, false]", "guard", "fewer than half"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_seen_before_more_than_a_hundredth_is_spent(folder: Path, run: Run, name: str) -> None:
    file, before, after, sees, said = MISTAKES[name]
    spec = filled(folder, run, file, rows=3000)
    text = spec.read_text(encoding="utf-8")
    assert before in text, text
    spec.write_text(text.replace(before, after), encoding="utf-8")
    if name == "a level with a gap":
        (folder / "stores.csv").write_text("name,region\nWorms,south\n", encoding="utf-8")
        spec.write_text(text.replace('{ file = "stores.csv", column = "name" }', '["Worms", "Kiel"]'), encoding="utf-8")
    if sees == "plan":
        assert said in run("plan", spec.name).err
    elif sees == "check":
        page = run("check", spec.name).out
        line = next(line for line in page.splitlines() if said in line)
        matched, outside = (float(part.split("%")[0]) for part in line.split("(")[1::2][:2])
        assert matched < 95 or outside > 5, page
    else:
        released = run("release", spec.name, "--out", "out")
        assert released.code == 2, released.out
        assert said in released.err
        ledger = folder / f"{spec.stem}.ledger"
        entries = ln.Ledger.open(ledger).entries() if ledger.exists() else ()
        assert [str(entry.charge) for entry in entries] == (["epsilon = 0.01"] if sees == "guard" else [])
        assert not (folder / "out").exists()
