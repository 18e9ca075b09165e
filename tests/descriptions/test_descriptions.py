"""Descriptions by other tools become specs without invented facts."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from leastnoise._cli import program
from leastnoise._cli._draft_text import draft_from_description
from leastnoise._descriptions import READERS, read_description
from leastnoise._spec import BLANK, parse_spec
from leastnoise._trusted.check import InputError

COLUMNS = [
    {"name": "penguin_id", "datatype": "integer"},
    {
        "name": "species",
        "datatype": "string",
        "required": True,
        "keyValues": ["Adelie", "Gentoo"],
        "exhaustiveKeys": True,
    },
    {
        "name": "island",
        "datatype": "string",
        "exhaustivePartitions": False,
        "partitions": [
            {"@type": "Partition", "predicate": {"partitionValue": name}}
            for name in ("Biscoe", "Dream")
        ],
    },
    {"name": "mass", "datatype": "double", "minimum": 2500.5, "maximum": 6500},
    {"name": "year", "datatype": {"base": "integer", "minimum": 2007, "maximum": 2009}},
    {
        "name": "depth",
        "datatype": "decimal",
        "partitions": [{"predicate": {"lowerBound": at, "upperBound": at + 5}} for at in (15, 10)],
    },
    {"name": "ringed", "datatype": "boolean"},
    {"name": "flipper", "datatype": "double", "minimum": 100},
    {"name": "eggs", "datatype": "integer", "maximum": 2},
    {"name": "seen", "datatype": "date", "minimum": "2007-01-01", "maximum": "2009-12-31"},
    {"name": "comment", "datatype": "string"},
    {"name": "lasted", "datatype": "duration"},
]
CSVW = {
    "@type": "csvw:Table",
    "privacyUnit": "penguin_id",
    "maxContributions": 3,
    "maxLength": 1000,
    "tableSchema": {"columns": COLUMNS},
}
SMARTNOISE = """
Database:
  PUMS:
    PUMS:
      rows: 1000
      max_ids: 4
      row_privacy: False
      age: {type: int, lower: 0, upper: 100}
      sex: {type: string, cardinality: 2}
      married: {type: boolean}
      income: {type: float, lower: 0, upper: 500000.5}
      born: {type: datetime}
      pid: {type: int, private_id: True}
"""
DOMAIN = {"sex": 2, "age": 74}


def filled(text):
    """Return the draft with a value in the place of every blank."""
    for blank, value in (
        (f'max_rows = "{BLANK}"', "max_rows = 2"),
        (f'from = "{BLANK}", to = "{BLANK}"', 'from = "2024-01-01", to = "2024-12-31"'),
        (f'["{BLANK}", "{BLANK}"]', "[0, 9]"),
        (f'low = "{BLANK}", high = "{BLANK}"', "low = 0, high = 9"),
        (f'["{BLANK}"]', '["a", "b"]'),
    ):
        text = text.replace(blank, value)
    return text


def read_text(tmp_path, text, name="given.json"):
    """Return the description in a file of this text."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_description(tmp_path / name)


def test_csvw_says_keys_bounds_partitions_and_the_unit(tmp_path):
    description = read_text(tmp_path, json.dumps(CSVW))
    assert description.tool == "CSVW-EO"
    assert (description.unit, description.max_rows) == ("penguin_id", 3)
    # One bound of flipper or of eggs is not enough.
    assert description.attributes == {
        "species": {"categories": ["Adelie", "Gentoo"]},
        "island": {"categories": ["Biscoe", "Dream"], "outside": "other"},
        "mass": {"bins": {"low": "2500.5", "high": 6500, "count": 100}, "outside": "clip"},
        "year": {"integers": [2007, 2009], "outside": "clip"},
        "depth": {"edges": ["10", "15", "20"]},
        "ringed": {"categories": [True, False]},
        "flipper": {"bins": {"low": BLANK, "high": BLANK, "count": 100}},
        "eggs": {"integers": [BLANK, BLANK]},
        "seen": {"dates": {"from": "2007-01-01", "to": "2009-12-31", "by": "month"}},
        "comment": {"categories": [BLANK]},
    }
    assert set(description.left_out) == {"penguin_id", "lasted"}
    assert description.measures == {
        "mass": {"clip": ["2500.5", 6500], "unit": "0.5"},
        "year": {"clip": [2007, 2009]},
    }


def test_smartnoise_says_types_bounds_and_the_unit(tmp_path):
    description = read_text(tmp_path, SMARTNOISE, "given.yaml")
    assert (description.tool, description.unit, description.max_rows) == ("SmartNoise", "pid", 4)
    assert description.attributes == {
        "age": {"integers": [0, 100], "outside": "clip"},
        "sex": {"categories": [BLANK]},
        "married": {"categories": [True, False]},
        "income": {"bins": {"low": 0, "high": "500000.5", "count": 100}, "outside": "clip"},
        "born": {"dates": {"from": BLANK, "to": BLANK, "by": "month"}},
    }
    of_rows = SMARTNOISE.replace("row_privacy: False", "row_privacy: True")
    assert read_text(tmp_path, of_rows, "rows.yaml").unit is None


def test_smartnoise_is_about_one_table(tmp_path):
    value = yaml.safe_load(SMARTNOISE)
    value["Database"]["PUMS"]["other"] = {"age": {"type": "int"}}
    with pytest.raises(
        InputError, match=r"describes 2 tables \(Database.PUMS.PUMS, Database.PUMS.other\)"
    ):
        read_text(tmp_path, yaml.safe_dump(value), "two.yaml")


def test_mbi_says_sizes(tmp_path):
    description = read_text(tmp_path, json.dumps(DOMAIN))
    assert description.tool == "mbi"
    assert description.attributes == {"sex": {"size": 2}, "age": {"size": 74}}


def test_opendp_says_types_and_bounds(tmp_path):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    kinds = {
        name: dp.atom_domain(T=kind)
        for name, kind in (("name", str), ("here", bool), ("pay", "f64"), ("rows", "u32"))
    }
    kinds["age"] = dp.atom_domain(bounds=(17, 90), T="i32")
    frame = dp.lazyframe_domain([dp.series_domain(name, kind) for name, kind in kinds.items()])
    description = read_text(tmp_path, dp.serialize(frame))
    assert description.attributes == {
        "age": {"integers": [17, 90], "outside": "clip"},
        "name": {"categories": [BLANK]},
        "here": {"categories": [True, False]},
        "pay": {"bins": {"low": BLANK, "high": BLANK, "count": 100}},
        "rows": {"integers": [BLANK, BLANK]},
    }
    assert description.measures == {"age": {"clip": [17, 90]}}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", json.dumps(CSVW)), ("b.yaml", SMARTNOISE), ("c.json", json.dumps(DOMAIN))],
)
def test_draft_is_a_spec_once_its_blanks_are_filled(tmp_path, name, text):
    description = read_text(tmp_path, text, name)
    draft = draft_from_description(
        description, tmp_path / "given", tmp_path / "spec.toml", tmp_path / "people.csv"
    )
    value = tomllib.loads(draft)
    assert value["source"]["path"] == "people.csv"
    assert set(value["domain"]) == set(description.attributes)
    spec = parse_spec(filled(draft), tmp_path)
    assert set(spec.domain.names) == set(description.attributes)
    assert spec.privacy.unit_column == description.unit
    # Measures are in comments of the draft.
    with_measures = re.sub(r"(?m)^# (?=\[measures|clip|unit)", "", draft)
    spec = parse_spec(filled(with_measures), tmp_path)
    assert set(spec.domain.measures) == set(description.measures)


def test_each_description_is_of_one_tool(tmp_path):
    values = [CSVW, DOMAIN, yaml.safe_load(SMARTNOISE)]
    assert [sum(read(value) is not None for read in READERS.values()) for value in values] == [
        1,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "has no known format. The supported formats are CSVW-EO"),
        ("{}", "has no known format"),
        ('{"sex": 0}', "has no known format"),
        ("a: [", "is neither JSON nor YAML"),
        ('{"tableSchema": {"columns": [3]}}', "one of CSVW-EO, but is damaged"),
        (
            (
                '{"tableSchema": {"columns": [{"name": "x", "datatype": "integer", "minimum": "a", '
                '"maximum": 2}]}}'
            ),
            "a lower bound must be",
        ),
        ("!!python/object/apply:os.system ['true']", "has no known format"),
    ],
)
def test_bad_descriptions_get_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_text(tmp_path, text)


def test_description_escapes_toml_and_comment_names(tmp_path):
    description = read_text(tmp_path, json.dumps({'a "b"\n[x]': 2, "c.d": 3}))
    draft = draft_from_description(description, tmp_path / "given", tmp_path / "spec.toml", None)
    assert list(tomllib.loads(draft)["domain"]) == ['a "b"\n[x]', "c.d"]


def test_description_command_reads_and_overwrites_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(json.dumps(DOMAIN))
    arguments = ["init", "not-there.csv", "--from", "domain.json"]
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 0
    assert "Run: leastnoise plan" in result.output
    assert tomllib.loads(Path("not-there.toml").read_text())["source"]["path"] == "not-there.csv"
    for words, message in (
        (arguments, "exists already"),
        ([*arguments, "--delimiter", ";"], "--from reads no data"),
        (["init"], "or a description: --from FILE"),
    ):
        assert message in str(CliRunner().invoke(program, words).exception)
