"""Tests of the parts that all pages share: colours, the browser's language, and undo."""

import re
import tomllib

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._studio import (
    ASSETS,
    change_draft,
    draft_from_text,
    format_spec,
    preferred_language,
)
from leastnoise._texts import load_catalogue
from studio.conftest import SERIES, SPEC, serving

# Pairs of the colour of a text and its background, then of an edge, which needs less contrast.
TEXTS = [
    *((text, paper) for text in ("ink", "muted") for paper in ("page", "surface", "surface-low")),
    ("ink", "accent-surface"), ("ink", "note-surface"), ("accent", "page"), ("accent", "surface"),
    ("accent", "accent-surface"), ("accent-hover", "accent-surface"), ("on-accent", "accent"),
    ("on-accent", "accent-hover"), ("error", "error-surface"), ("error", "surface"),
    ("note", "surface"), ("note", "surface-low"), ("done", "surface"), ("done", "surface-low"),
    ("disabled", "disabled-surface"),
]  # fmt: skip
EDGES = [
    ("edge", "surface"),
    ("error", "error-surface"),
    ("accent", "page"),
    ("disabled", "surface"),
]


def linear_light(component):
    """Return the linear light of a component of sRGB, from 0 to 1 (IEC 61966-2-1)."""
    if component <= 0.04045:
        return component / 12.92
    return ((component + 0.055) / 1.055) ** 2.4


def luminance(colour):
    """Return the relative luminance of a colour such as #ff0000, as WCAG 2 defines it."""
    red, green, blue = (linear_light(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour, other_colour):
    """Return the contrast ratio of two colours, as WCAG 2 defines it."""
    low, high = sorted((luminance(colour), luminance(other_colour)))
    return (high + 0.05) / (low + 0.05)


def test_colours_contrast_in_light_and_dark():
    light, dark = (ASSETS / "tokens.css").read_text().split("@media")
    colours = {}
    for part in (light, dark):
        colours |= dict(re.findall(r"--([\w-]+): (#\w{6});", part))
        # The levels of AA in WCAG 2 (1.4.3 and 1.4.11).
        for pairs, least_contrast in ((TEXTS, 4.5), (EDGES, 3)):
            for text, paper in pairs:
                assert contrast(colours[text], colours[paper]) >= least_contrast, (text, paper)


def test_style_uses_only_defined_tokens():
    defined = set(re.findall(r"(--[\w-]+):", (ASSETS / "tokens.css").read_text()))
    used = set(re.findall(r"var\((--[\w-]+)\)", (ASSETS / "studio.css").read_text()))
    assert used <= defined


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("fr,en-GB;q=0.4,de;q=0.7", "de"),
        ("en-US,de;q=0.5", "en"),
        ("DE;q=x, *;q=0.5", ""),
        ("fr", ""),
        ("de;q=0", ""),
        ("", ""),
    ],
)
def test_browser_language_is_the_preferred_one(accepted, language):
    assert preferred_language(accepted) == language


def test_first_pages_have_the_browser_language(tmp_path, monkeypatch, plan_in_process):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,age\n")
    (tmp_path / "open.toml").write_text(SPEC)
    (tmp_path / "english.toml").write_text(f'{SPEC}[output]\nlanguage = "en"\n')
    german = load_catalogue("de")
    titles = {
        None: german.say("be_title_choose"),
        "people.csv": german.say("be_title", name="people.csv"),
        "open.toml": german.say("st_title_plan", name="open.toml"),
        "english.toml": load_catalogue("en").say("st_title_plan", name="english.toml"),
    }
    for name, title in titles.items():
        with serving(name and tmp_path / name) as client:
            assert f"<h1>{title}</h1>" in client.enter("de-DE,en;q=0.5")
            assert f"<h1>{title}</h1>" in client.ask("/", language="en")[2].decode()
            if name == "english.toml":
                client.json("/language", {"language": "de"})
                assert german.say("h_tables") in client.ask("/")[2].decode()
                client.json("/view")
                assert "über 0" in client.act("/change", changes={"size": "0"})["refused"]
                assert 'language = "en"' in client.ask("/spec")[2].decode()


def test_exploring_has_the_browser_language(tmp_path):
    table = ln.queries(ln.Domain(sex=["F", "M"]), sex="identity")
    people = {"sex": ["F", "M", "M"]}
    ln.release(ln.plan(table, ln.PureDP(1)), pd.DataFrame(people), seed=1, out=tmp_path / "out")
    with serving(tmp_path / "out") as client:
        assert load_catalogue("de").say("st_sum") in client.enter("de")
        client.json("/language", {"language": "en"})
        assert load_catalogue("en").say("st_sum") in client.ask("/")[2].decode()


def test_changes_of_a_plan_can_be_undone(client, spec):
    client.enter()
    first_view = client.json("/view")
    assert not first_view["undo"]
    assert not first_view["redo"]
    assert "no change to undo" in client.act("/undo")["refused"]

    client.act("/change", changes={"level": 0.9})
    for size in ("2", "3", "4"):  # one movement of the slider
        client.act("/change", changes={"size": size}, drag=1)
    client.act("/change", changes={"on": False}, rows=[1])
    client.act("/change", changes={"size": "5"}, drag=2)
    views = [client.act("/undo") for _ in range(4)]
    assert [(view["size"], view["rows"][1]["set"][0], view["level"]) for view in views] == [
        ("4", False, 0.9),
        ("4", True, 0.9),
        ("1", True, 0.9),
        ("1", True, 0.95),
    ]
    assert client.ask("/spec")[2].decode() == SPEC
    assert not views[-1]["undo"]
    assert views[-1]["redo"]


def test_undone_changes_can_be_redone(client):
    client.enter()
    client.json("/view")
    client.act("/change", changes={"level": 0.9})
    client.act("/change", changes={"size": "4"})
    client.act("/change", changes={"on": False}, rows=[1])
    for _ in range(3):
        client.act("/undo")
    assert client.act("/redo")["level"] == 0.9
    assert client.act("/redo")["size"] == "4"
    assert client.act("/change", changes={"size": "7"})["redo"] is False
    assert "no change to redo" in client.act("/redo")["refused"]
    assert "a slider must be" in client.act("/change", changes={}, drag="x")["refused"]


def test_swap_of_plans_can_be_undone(client):
    client.enter()
    client.json("/view")
    client.act("/change", changes={"size": "7"})
    assert client.planned_view()["size"] == "7"
    client.act("/keep")
    client.act("/change", changes={"size": "8"})
    client.planned_view()
    assert client.act("/swap")["size"] == "7"
    assert client.act("/undo")["size"] == "8"


def test_kept_plan_survives_a_change_of_language(client):
    client.enter()
    client.planned_view()
    client.act("/keep")
    client.act("/change", changes={"size": "8"})
    client.planned_view()
    client.json("/language", {"language": "de"})
    client.json("/view")
    assert client.act("/swap")["size"] == "1"
    assert load_catalogue("de").say("h_tables") in client.ask("/")[2].decode()


RICH = f"""{SERIES}late = "drop"
max_rows = 12
[ledger]
dataset = "people"
[names]
rows = {{ en = "persons", de = "Personen" }}
[names.measures.pay]
unit = "EUR"
decimals = 2
[output]
title = "Pay"
formats = ["csv", "sdmx"]
round = {{ rows = 5, pay = 100 }}
rounding = "controlled"
languages = ["en", "de"]
""".replace(
    'categories = ["F", "M"]',
    'categories = ["F", "M"]\nlabels = { F = "women", M = { en = "men", de = "Männer" } }\n'
    'levels.all = { groups = { people = ["F", "M"] } }',
).replace('rho = "1/8"', 'rho = "1/8"\nunit = { column = "id", max_rows = 3 }')


def test_unedited_parts_survive_a_change(tmp_path):
    """Parts without a field on the planning page stay as they were, letter by letter."""
    draft = draft_from_text(RICH, tmp_path)
    assert format_spec(draft) == RICH
    changed = change_draft(draft, {"size": "1/4", "periods": 6, "level": 0.9})
    changed = change_draft(changed, {"weight": "2"}, [1])

    settings = tomllib.loads(format_spec(changed))
    assert settings["privacy"].pop("rho") == "1/4"
    assert settings["output"].pop("level") == 0.9
    assert settings["workload"][1].pop("weight") == "2"
    assert settings["domain"]["month"]["dates"].pop("to") == "2024-06-30"
    other_settings = tomllib.loads(RICH)
    del other_settings["privacy"]["rho"]
    del other_settings["domain"]["month"]["dates"]["to"]
    assert settings == other_settings
