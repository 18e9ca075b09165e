"""`leastnoise check`: exact private output, no files, and what `plan` says without data."""

import pandas as pd
import pytest

import leastnoise as ln
from cli.conftest import assert_contains, files

SPEC = """\
[source]
path = "visits.csv"
null = ["NA"]
[privacy]
epsilon = "1"
unit = { column = "id", max_rows = 2 }
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [17, 90]
outside = "clip"
null = "other"
[domain.day]
dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }
outside = "other"
[domain.unused]
size = 3
[measures.pay]
clip = [0, 1000]
[[workload]]
marginals = { ways = 1, of = ["sex", "age", "day"] }
[[workload]]
queries = { sex = "identity" }
sum = "pay"
[plan]
strategy = "identity"
"""
ROWS = """\
id,sex,age,day,pay
1,F,20,2024-05-01,5
1,f,20,2024-05-01,5
1,M,20,2024-05-01,5
2,f,NA,2023-05-01,x
3,weiblich,x,2024-05-01,5000
,M,200,2024-05-01,NA
3,M,200,2024-05-01
"""


@pytest.fixture
def visits(folder):
    """Return a directory with a table of visits and its spec."""
    (folder / "visits.csv").write_text(ROWS, encoding="utf-8")
    (folder / "visits.toml").write_text(SPEC, encoding="utf-8")
    return folder


def test_check_counts_matches_and_marks_lines(visits, run):
    files_before = files(visits)
    output = run.succeeds("check", "visits.toml").out
    assert all(line.startswith("PRIVATE") for line in output.splitlines())
    parts = (
        "lines          7, of which 1 (14.3%) are not records",
        "rows read      6",
        "without unit   1 (16.7%)",
        "cut            1 (16.7%), beyond max_rows",
        "rows used      4 (66.7%)",
        "the table by sex leaves out 3 (75.0%) of them",
        "sex: 3 (50.0%) matched, 0 (0.0%) null, 3 (50.0%) outside",
        "age: 3 (50.0%) matched, 1 (16.7%) null, 2 (33.3%) outside",
        (
            "of those not matched: 1 (16.7%) counted in the nearest cell, 2 (33.3%) counted in a "
            "separate cell"
        ),
        "day: 5 (83.3%) matched, 0 (0.0%) null, 1 (16.7%) outside",
        "pay, to be summed: 3 (50.0%) matched, 1 (16.7%) null, 2 (33.3%) outside",
        "is a release without payment",
        "leastnoise check SPEC --values",
    )
    assert_contains(output, *parts)
    assert "weiblich" not in output
    assert "unused" not in output
    assert files(visits) == files_before


def test_check_shows_values_only_on_request_by_frequency(visits, run):
    output = run("check", "visits.toml", "--values").out
    assert output.index("2 (33.3%)  'f'") < output.index("1 (16.7%)  'weiblich'")
    assert all(line.startswith("PRIVATE") for line in output.splitlines())


def write_shop(folder, text, source_settings=""):
    """Write a file in cp1252 and a spec that counts its column `ort`."""
    (folder / "shop.csv").write_bytes(text.encode("cp1252"))
    (folder / "shop.toml").write_text(
        f'[source]\npath = "shop.csv"\n{source_settings}[privacy]\nepsilon = 1\n'
        '[domain.ort]\ncategories = ["Köln"]\n[[workload]]\nmarginals = { ways = 1 }\n',
        encoding="utf-8",
    )


def test_check_names_a_wrong_encoding(folder, run):
    write_shop(folder, "ort;tag\nKöln;1\n")
    finding = (
        "1 (100.0%)  bytes that are not text in this encoding: state another encoding, such as "
        '[source] encoding = "cp1252"'
    )
    assert finding in run("check", "shop.toml", "--values").out
    write_shop(folder, "ort;tag\nKöln;1\n", 'encoding = "cp1252"\n')
    assert "ort: 1 (100.0%) matched" in run("check", "shop.toml").out


def test_check_names_a_wrong_delimiter(folder, run):
    for header, mark in (("ort,tag", ","), ("ort|tag", "|"), ("ort\ttag", "\\t")):
        write_shop(folder, f"{header}\n", 'delimiter = ";"\n')
        run.is_refused(f'for example [source] delimiter = "{mark}".', "check", "shop.toml")


def test_check_from_python_agrees_with_every_source(visits):
    spec = ln.read_spec(visits / "visits.toml")
    from_file = ln.check(spec).fit
    names, *rows = [line.split(",") for line in ROWS.splitlines()[:-1]]
    frame = pd.DataFrame(rows, columns=names)
    from_frame = ln.check(spec, frame).fit
    assert from_frame.lines is None
    assert from_frame.attributes == from_file.attributes
    assert from_frame.measures == from_file.measures
    assert from_frame.used == from_file.used
    assert repr(ln.check(spec, frame)).startswith("PRIVATE")
    for subject, message in (
        ("visits.toml", "the request of a check must be a spec, a plan or a workload"),
        (spec.workload, "A check must have data"),
    ):
        with pytest.raises(ln.InputError, match=message):
            ln.check(subject)


WARNED = {
    "a Boolean that is text": (
        'categories = ["F", "M"]',
        "categories = [true, false]",
        "TRUE, yes and 1 do not",
    ),
    "one period": (
        'to = "2024-12-31", by = "month"',
        'to = "2024-12-31", by = "year"',
        "has one cell",
    ),
    "a measure that is clipped away": (
        "clip = [0, 1000]",
        "clip = [0, 1]",
        "leaves almost no whole number unchanged",
    ),
    "margins of rounded answers": (
        "[plan]",
        "margin = 300000\n[output]\nround = 5\n[plan]",
        "widens published intervals by 2.5 to each side",
    ),
    "an attribute without queries": ("", "", "No query uses the attribute [domain.unused]"),
}


@pytest.mark.parametrize(("strategy", "rows_read"), [("truncated_sums", True), ("auto", False)])
def test_check_reads_number_of_the_strategy(folder, run, strategy, rows_read):
    (folder / "pay.csv").write_text("sex,pay\nF,3\nM,99\n", encoding="utf-8")
    spec = (
        f'[source]\npath = "pay.csv"\n[privacy]\nepsilon = 1\n[plan]\nstrategy = "{strategy}"\n'
        '[domain.sex]\ncategories = ["F", "M"]\n'
    )
    spec += '[domain.pay]\nintegers = [0, 60]\n[measures.wages]\ncolumn = "pay"\nclip = [0, 60]\n'
    (folder / "pay.toml").write_text(
        spec + '[[workload]]\nqueries = { sex = "identity" }\nsum = "wages"\n', encoding="utf-8"
    )
    assert (
        "No query uses the attribute [domain.pay]" in run("plan", "pay.toml").err
    ) is not rows_read
    assert ("PRIVATE  pay: " in run.succeeds("check", "pay.toml").out) is rows_read


@pytest.mark.parametrize(
    ("name", "clip", "unit", "warned"),
    [
        ("poor", "[0, 1]", "", ""),
        ("pays_rent", "[0, 1]", "", ""),
        ("poor", "[0, 1]", 'unit = "0.01"', ""),
        ("share_of_rent", "[0, 1]", "", 'unit = "0.01"'),
        ("share_of_rent", "[0, 1]", 'unit = "0.01"', ""),
        ("acidity", "[6, 7]", 'unit = "0.1"', ""),
        ("score", "[6, 7]", "", "leaves almost no whole number unchanged"),
        ("amount", "[0, 1]", "", "leaves almost no whole number unchanged"),
    ],
)
def test_check_warns_of_doubtful_measure_bounds(folder, run, name, clip, unit, warned):
    (folder / "s.toml").write_text(
        f'[privacy]\nepsilon = 1\n[domain.sex]\ncategories = ["F", "M"]\n[measures.{name}]\n'
        f'clip = {clip}\n{unit}\n[[workload]]\nmeans = {{ of = "{name}", by = ["sex"] }}\n',
        encoding="utf-8",
    )
    err = run.succeeds("plan", "s.toml").err
    assert warned in err
    assert ("Warning" in err) is bool(warned)


@pytest.mark.parametrize(("original", "replacement", "warning"), WARNED.values(), ids=WARNED)
def test_plan_warns_of_likely_mistakes_without_data(visits, run, original, replacement, warning):
    assert original in SPEC
    text = SPEC.replace(original, replacement).replace(
        'null = ["NA"]', 'null = ["NA"]\ndelimiter = ";"'
    )
    (visits / "visits.toml").write_text(text, encoding="utf-8")
    (visits / "visits.csv").unlink()
    assert warning in run.succeeds("plan", "visits.toml").err


FAULTS = {
    "a delimiter at the end": ("sex;age\nF;3;\nM;4\n", "it has 3 fields, and the header has 2"),
    "a field too many": ('sex,age\n"1","F",3\nM,4\n', "it has 3 fields, and the header has 2"),
    "escaped quotes": (
        'sex,age,remark\nF,3,"said \\"no\\""\nM,4,"x"\n',
        "text stands behind a closing quote",
    ),
    "an open quote": ('sex,age\nF,"3\nM,4\n', "a quote does not close"),
    "a field too few": ("sex,age\nF\n\nM,4\n", "it has 1 field, and the header has 2"),
    "a long line": (
        "sex,age\n" + "F" * 2_100_000 + ",3\nM,4\n",
        "it is longer than 2,000,000 bytes",
    ),
}


@pytest.mark.parametrize(("content", "reason"), FAULTS.values(), ids=FAULTS)
def test_check_explains_why_lines_are_not_records(folder, run, content, reason):
    (folder / "x.csv").write_text(content)
    (folder / "x.toml").write_text(
        '[source]\npath = "x.csv"\n[privacy]\nepsilon = "1"\n[domain.sex]\n'
        'categories = ["F", "M"]\n'
        '[[workload]]\nqueries = { sex = "identity" }\n'
    )
    output = run.succeeds("check", folder / "x.toml").out
    assert reason in output
    assert "rows used      1" in output


def test_check_explains_rows_that_the_guard_counts_unused(folder, run):
    (folder / "visits.csv").write_text("id;sex;age;day;pay\n1;F;20;2024-05-01;1,5\n2;M;20;;\n")
    (folder / "visits.toml").write_text(SPEC, encoding="utf-8")
    page = run.succeeds("check", "visits.toml").out
    assert "rows used      2 (100.0%)" in page
    assert (
        "1 (50.0%) of them have no number where a number is to be summed: a guard counts these"
        in page
    )


@pytest.mark.parametrize(
    "measure",
    [
        'clip = [0, 1000]\n[[workload]]\nqueries = {}\nsum = "pay"',
        'clip = [0, 1000]\n[[workload]]\nqueries = {}\ncount = "pay"',
        'clip = [0, 1000]\n[[workload]]\nvariances = { of = "pay", by = ["sex"] }',
        (
            'unit_total = { clip = [0, 1000], by = ["sex"] }\n'
            '[[workload]]\nqueries = { sex = "identity" }\nsum = "pay"'
        ),
    ],
)
def test_check_covers_every_kind_of_measure(visits, run, measure):
    head, _, tail = SPEC.partition("clip = [0, 1000]")
    tables = tail.partition("[plan]")[0].replace('sum = "pay"', "")
    text = f"{head}{measure}\n{tables}"
    (visits / "visits.toml").write_text(text, encoding="utf-8")
    lines = run.succeeds("check", "visits.toml").out
    assert "pay, to be summed: " in lines
    renamed = text.replace("[measures.pay]", '[measures.pay]\ncolumn = "payy"')
    (visits / "visits.toml").write_text(renamed, encoding="utf-8")
    faults = [check for check in ln.read_spec("visits.toml").check_schema() if check.fault]
    assert [(check.column, check.use) for check in faults] == [("payy", "measure pay")]
    assert run("check", "visits.toml", "--schema").code == 2
