"""Inline levels, texts of codes, and titles of publications, from the spec to the pages."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import leastnoise as ln
from cli.conftest import assert_contains
from leastnoise._spec import parse_spec

SPEC = """
[privacy]
epsilon = 1
[domain.age]
integers = [0, 111]
levels.group = { edges = [0, 18, 30, 45, 65] }
[domain.job]
categories = ["0110", "0210", "2211", "2212"]
levels.major = { digits = 1 }
labels = { file = "jobs.csv", key = "code", value = "text" }
[[workload]]
queries = { age = { level = "group" } }
[[workload]]
queries = { job = { level = "major" } }
[[workload]]
queries = { job = "identity" }
[output]
language = "LANGUAGE"
formats = ["csv", "sdmx"]
title = "Jobs in Ruritania"
source = "Register of jobs, 2025"
agency = "Office of Ruritania"
"""
JOBS = (
    "code,text\n0,Armed forces\n0110,Officers\n0210,Other ranks\n2,Professionals\n2211,Doctors\n"
    "2212,Doctors\n9,Elementary\n"
)


def level(kind, levels, **_):
    """Return the level of an attribute of a spec."""
    text = (
        f"[privacy]\nepsilon = 1\n[domain.x]\n{kind}\nlevels.group = {levels}\n[[workload]]\n"
        "queries = { x = { level = 'group' } }\n"
    )
    return parse_spec(text, Path()).domain.kind("x").level("group")


@pytest.mark.parametrize(
    ("kind", "levels", "labels", "sizes"),
    [
        (
            "integers = [0, 111]",
            "{ edges = [0, 18, 30, 45, 65] }",
            ("0-17", "18-29", "30-44", "45-64", "65+"),
            (18, 12, 15, 20, 47),
        ),
        ("integers = [17, 20]", "{ edges = [0, 18, 19, 65] }", ("0-17", "18", "19-64"), (1, 1, 2)),
        ("integers = [-5, 5]", "{ edges = [-5, 0] }", ("-5 .. -1", "0+"), (5, 6)),
        (
            "integers = [0, 9]\noutside = 'other'",
            "{ edges = [0, 5] }",
            ("0-4", "5+", "other"),
            (5, 5, 1),
        ),
        (
            "bins = { low = 0, high = 100, count = 10 }",
            "{ edges = [0, 20, 50] }",
            ("[0, 20)", "[20, 50)", "50+"),
            (2, 3, 5),
        ),
        (
            "edges = [0, '0.5', 2]\nclosed = 'right'",
            "{ edges = [0, '0.5'] }",
            ("(0, 0.5]", "> 0.5"),
            (1, 1),
        ),
        (
            "decimals = { low = 0, high = 2, step = '0.5' }",
            "{ edges = [0, 1] }",
            ("[0, 1)", "1+"),
            (2, 3),
        ),
        ("size = 3", "{ groups = { a = [0, 1], b = [2] } }", ("a", "b"), (2, 1)),
        ("categories = ['A011', 'A012', 'B3']", "{ digits = 2 }", ("A0", "B3"), (2, 1)),
        ("integers = [10000, 29999]", "{ digits = 1 }", ("1", "2"), (10000, 10000)),
    ],
)
def test_inline_groups_equal_their_maps(kind, levels, labels, sizes):
    groups = level(kind, levels)
    assert groups.labels == labels
    assert tuple(groups.cells.count(group) for group in range(len(labels))) == tuple(sizes)


@pytest.mark.parametrize(
    ("kind", "levels", "message"),
    [
        (
            "integers = [0, 111]",
            "{ edges = [18, 30] }",
            (
                "edges of levels.group must be a list of increasing numbers, the first of them at "
                "most 0"
            ),
        ),
        ("integers = [0, 111]", "{ edges = [0, 30, 18] }", "increasing numbers"),
        ("integers = [0, 111]", "{ edges = [] }", "increasing numbers"),
        ("integers = [0, 111]", "{ edges = 18 }", "increasing numbers"),
        (
            "integers = [0, 111]",
            "{ edges = [0, '17.5'] }",
            "edges between cells, because no cell may lie in two groups",
        ),
        (
            "bins = { low = 0, high = 100, count = 10 }",
            "{ edges = [0, 25] }",
            "edges between cells",
        ),
        (
            "bins = { low = 0, high = 100, count = 10 }",
            "{ edges = [0, 95] }",
            "edges between cells",
        ),
        (
            "categories = ['a', 'b']",
            "{ edges = [0, 25] }",
            r"used only for numbers \(integers, decimals, bins or edges\)",
        ),
        (
            "categories = ['a', 'bc']",
            "{ digits = 2 }",
            "digits of levels.group must be given for codes of at least 2 digits or letters",
        ),
        ("integers = [5, 120]", "{ digits = 1 }", "numbers must have equally many"),
        ("size = 9", "{ digits = 1 }", "digits of levels.group must be"),
        (
            "categories = ['ab', 'bc']",
            "{ digits = 0 }",
            "digits of levels.group must be a whole number",
        ),
        (
            "categories = ['ab', 'bc']",
            "{ digits = 1, edges = [1] }",
            "must be { file, key, value }, { edges",
        ),
    ],
)
def test_groups_that_fit_no_cells_are_refused(kind, levels, message):
    with pytest.raises(ln.InputError, match=message):
        level(kind, levels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            "{ file = 'jobs.csv', key = 'code', value = 'name' }",
            "value of .domain.job. labels must be one column of jobs.csv",
        ),
        (
            "{ file = 'jobs.csv', key = 'text', value = 'code' }",
            "labels must give every key one value; 'Doctors' has",
        ),
        (
            "{ '0999' = 'nobody' }",
            "the codes in .domain.job. labels must be codes of the attribute, such as '0'; got",
        ),
        ("{ '0110' = '' }", "labels must be texts of codes, such as"),
        ("['men']", "labels must be texts of codes, such as"),
    ],
)
def test_texts_of_no_code_are_refused(tmp_path, labels, message):
    (tmp_path / "jobs.csv").write_text(JOBS)
    text = re.sub("labels = .*", f"labels = {labels}", SPEC.replace("LANGUAGE", "en"))
    with pytest.raises(ln.InputError, match=message):
        parse_spec(text, tmp_path)


def test_labels_of_levels_may_be_in_another_file(tmp_path):
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "majors.csv").write_text("major,en,de\n0,Army,Heer\n2,Experts,Fachleute\n")
    jobs = '{ file = "jobs.csv", key = "code", value = "text" }'
    majors = '{ file = "majors.csv", key = "major", value = { en = "en", de = "de" } }'
    labels = f'labels = [{jobs}, {majors}, {{ "2212" = "Dentists" }}]'
    text = re.sub("labels = .*", labels, SPEC.replace("LANGUAGE", "en"))
    texts = parse_spec(text, tmp_path).options.labels["job"]
    assert texts["0110"] == "Officers"
    assert texts["0"] == {"en": "Army", "de": "Heer"}
    assert texts["2212"] == "Dentists"


@pytest.mark.parametrize("labels", ["[]", '["0110"]', '[{ "0110" = 1 }]'])
def test_lists_of_labels_have_texts_or_files(tmp_path, labels):
    (tmp_path / "jobs.csv").write_text(JOBS)
    text = re.sub("labels = .*", f"labels = {labels}", SPEC.replace("LANGUAGE", "en"))
    with pytest.raises(ln.InputError, match="labels must be texts of codes"):
        parse_spec(text, tmp_path)


@pytest.mark.parametrize("language", ["en", "de"])
def test_pages_show_texts_and_files_keep_codes(tmp_path, monkeypatch, language):
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(JOBS)
    spec = parse_spec(SPEC.replace("LANGUAGE", language), tmp_path)
    people = pd.DataFrame({"age": [10, 70] * 50, "job": ["0110", "2211"] * 50})
    ln.release(
        ln.plan(spec.workload, spec.privacy), people, seed=1, options=spec.options, out="out"
    )
    release = ln.read_release("out")
    assert release.options.labels["job"] == dict(
        line.split(",") for line in JOBS.splitlines()[1:-1]
    )
    source = (
        "Source: Register of jobs, 2025." if language == "en" else "Quelle: Register of jobs, 2025."
    )
    office = "Office of Ruritania: Jobs in Ruritania. "
    page = Path("out/report.html").read_text("utf-8")
    assert_contains(
        page, "Jobs in Ruritania</h1>", "65+", "Armed forces", "Doctors (2212)", office, source
    )
    assert ">2211<" not in page
    assert release.tables["q2"].cell_names() == [
        "job:major=Armed forces",
        "job:major=Professionals",
    ]
    assert release.frame("q2", "pandas")["job:major"].tolist() == ["0", "2"]
    assert "2211" in next(Path("out/answers").glob("q3-*.csv")).read_text("utf-8")
    rows = next(Path("out/answers").glob("q3-*.sdmx.csv")).read_text("utf-8")
    assert_contains(rows, "OFFICE_OF_RURITANIA:Q3_JOB(1.0.0)", "2211: Doctors (2211)")
    structure = Path("out/structure.sdmx.xml").read_text("utf-8")
    assert_contains(
        structure,
        '<mes:Sender id="OFFICE_OF_RURITANIA">',
        "Jobs in Ruritania. Register of jobs, 2025",
    )
    (answered,) = release.answer(ln.queries(release.plan.domain, job={"predicates": [["0110"]]}))
    assert answered.cell_names() == ["job=Officers"]


def test_quantiles_and_means_show_texts_too():
    plan = ln.plan(
        ln.quantile_queries(
            ln.Domain(sex=["1", "2"], age=ln.Integers(0, 9)), "age", ["0.5"], by=["sex"]
        ),
        ln.PureDP(9),
    )
    people = pd.DataFrame({"sex": ["1", "2"] * 50, "age": [1, 2] * 50})
    statistic = ln.release(
        plan, people, seed=1, options=ln.Options(labels={"sex": {"1": "men"}})
    ).statistics[0]
    assert [names[0] for names, _ in statistic.rows()] == ["men", "2"]
    assert statistic.frame("pandas")["sex"].tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", {"sex": ["men"]}),
        ("labels", []),
        ("title", "a\nb"),
        ("agency", 7),
        ("source", None),
    ],
)
def test_wrong_options_are_refused_defaults_omitted(name, value):
    of_labels = "labels must be a mapping from attributes to texts of their codes"
    with pytest.raises(
        ln.InputError, match=of_labels if name == "labels" else f"{name} must be a text of one line"
    ):
        ln.Options(**{name: value})
    assert name not in json.loads(json.dumps(ln.Options().to_json()))
