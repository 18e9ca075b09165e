"""Texts from data stay data: spreadsheets do not run them, and they are read back."""

import csv
import json
import random
import re
import shutil
import subprocess
import sys
import unicodedata
import zipfile
from xml.etree import ElementTree as ET

import openpyxl
import pandas as pd
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

import leastnoise as ln
from leastnoise._charts import render_svg
from leastnoise._cli import program
from leastnoise._frames import escape_controls
from leastnoise._publication import read_categories
from leastnoise._release import make_inert, restore_inert
from leastnoise._texts import TEMPLATES
from page_parser import Page
from waiting import HANGS

HOSTILE = (
    "\x00=1",
    " \ufeff=1",
    "=cmd|' /C calc'!A0",
    "+SUM(A1)",
    "-2+3+cmd|'",
    "@import",
    "'=1+1",
    "\t=1",
    '=HYPERLINK("http://x","y")',
)
HARMLESS = ("'s-Hertogenbosch", "-5", "+49 30", "-1,5", "2024-01-01", "curl", "a=b", "O'Brien")


def test_spreadsheet_formulas_get_an_apostrophe():
    assert [make_inert(text) for text in (*HOSTILE, *HARMLESS)] == [
        *(f"'{text}" for text in HOSTILE),
        *HARMLESS,
    ]


@given(st.text(alphabet="=+-@'\t\r\n 19.a"))
def test_every_text_is_read_back(text):
    assert restore_inert(make_inert(text)) == text


NASTY = (
    *HOSTILE,
    # More formulas.
    "\uff1d1+1",
    "\r=1",
    " =1+1",
    "\ufeff=1",
    "'',=1",
    # Markup.
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "</style><script>document.title = 'x'</script>",
    "</td></table><h1>x</h1>",
    "<svg onload=alert(1)>",
    "<?xml?><![CDATA[<b>]]>",
    "]]>&amp;<!--",
    "&lt;b&gt;&#60;",
    "[red]x[/red]",
    "[link=https://x.example]y[/link]",
    "{{7*7}}",
    "https://x.example/",
    # Escape sequences of terminals and files.
    "\x1b[31mred\x07",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\\x1b",
    "_x0041_",
    # Directions of text, ends of lines, and characters that some formats do not allow.
    "\u202egnp.exe",
    "a\u2066b\u2069",
    "a\u2028b",
    "x\ny",
    "a\x00b",
    "\ufffe",
    "\U000e0001x",
    # Words for missing values and errors, and a long text.
    "NULL",
    "nan",
    "#REF!",
    "long" * 2000,
)
# A search takes no control characters and no very long texts. SVG does not allow U+FFFE.
FOUND = tuple(
    text
    for text in NASTY
    if len(text) < 256
    and "\ufffe" not in text
    and not any(unicodedata.category(letter) == "Cc" for letter in text)
)
ACTED_ON = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Write releases of categories found in rows and of categories with control characters."""
    folder = tmp_path_factory.mktemp("inert")
    rows = pd.DataFrame({"agent": [text for text in FOUND for _ in range(400)]})
    search = ln.plan_categories("agent", ln.Unknown(99, outside="other"), ln.ApproxDP(2, "1e-9"))
    categories = ln.find_categories(
        search,
        rows,
        ledger=folder / "x.ledger",
        out=folder / "agents",
        total_privacy=ln.Privacy(ln.ApproxDP(9, "1e-6")),
    )
    assert set(categories.texts) == set(FOUND)
    assert read_categories(folder / "agents").texts == categories.texts
    options = ln.Options(formats=("csv", "parquet", "xlsx", "sdmx"))
    for name, texts in (("found", categories.texts), ("given", NASTY)):
        plan = ln.plan(ln.marginals(ln.Domain(agent=list(texts)), ways=1), ln.PureDP(1))
        ln.release(plan, rows, ledger=folder / "x.ledger", out=folder / name, options=options)
    return folder


@pytest.fixture(params=["found", "given"])
def release_folder(request, releases):
    return releases / request.param


def labels(release):
    return [str(label) for label in ln.read_release(release).frame("q1")["agent"]]


def column(path, name):
    with path.open(encoding="utf-8", newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_csv_is_inert_and_parquet_keeps_texts(releases, release_folder):
    arguments = [
        "round",
        str(release_folder),
        "--to",
        "5",
        "--out",
        str(releases / f"{release_folder.name}-rounded"),
    ]
    CliRunner().invoke(program, arguments, catch_exceptions=False)
    (written,) = (release_folder / "answers").glob("*[!x].csv")
    (rounded,) = (releases / f"{release_folder.name}-rounded").glob("*.csv")
    for path, name in (
        (written, "agent"),
        (rounded, "agent"),
        (releases / "agents/categories.csv", "category"),
    ):
        fields = column(path, name)
        assert [field for field in fields if re.match(r"[=+@\t\r\n\uff1d-]", field)] == []
        assert [restore_inert(field) for field in fields] == (
            labels(release_folder) if name == "agent" else labels(releases / "found")
        )
    assert pyarrow.parquet.read_table(written.with_suffix(".parquet")).column(
        "agent"
    ).to_pylist() == labels(release_folder)


def test_workbooks_hold_texts_and_no_formulas(release_folder):
    sheet = openpyxl.load_workbook(release_folder / "answers.xlsx").worksheets[1]
    (cells,) = (column[5:] for column in sheet.iter_cols(2, 2))
    assert {(cell.data_type, cell.hyperlink) for cell in cells} == {("s", None)}
    # The format escapes control characters.
    assert [unescape(cell.value) for cell in cells] == labels(release_folder)
    assert (
        zipfile.ZipFile(release_folder / "answers.xlsx")
        .read("xl/worksheets/sheet2.xml")
        .count(b"<f>")
        == 0
    )


def test_reports_escape_texts(release_folder):
    page = Page((release_folder / "report.html").read_text(encoding="utf-8"))
    assert [page.tags.count(tag) for tag in ("script", "img", "b", "h1", "style")] == [
        1,
        0,
        0,
        1,
        1,
    ]
    assert set(labels(release_folder)) <= {cell.rstrip("\n") for cell in page.cells}


def test_sdmx_holds_texts_behind_codes(release_folder):
    """Control characters, which XML does not allow, are missing; other texts are whole."""
    root = ET.parse(release_folder / "structure.sdmx.xml").getroot()  # noqa: S314 - of our own
    printable_labels = [
        label
        for label in labels(release_folder)
        if not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe]", label)
    ]
    assert {*printable_labels} <= {
        element.text for element in root.iter() if element.tag.endswith("}Name")
    }
    (written,) = (release_folder / "answers").glob("*.sdmx.csv")
    fields = column(written, "AGENT: agent")
    assert [field.split(": ", 1)[1] for field in fields] == labels(release_folder)
    assert all(re.match(r"[A-Z0-9]|-5: ", field) for field in fields)


def test_terminals_act_on_nothing(release_folder):
    """Tables for people escape control characters; JSON is read back unchanged."""

    def printed(command, *arguments):
        command_line = [command, str(release_folder), *arguments]
        done = CliRunner().invoke(
            program, command_line, env={"COLUMNS": "300"}, catch_exceptions=False
        )
        assert ACTED_ON.findall(done.output) == []
        return done.stdout

    texts = labels(release_folder)
    shown = printed("show", "q1")
    answered = printed("answer", "--cells", "agent")
    assert [
        label for label in texts if len(label) < 200 and escape_controls(label) not in shown
    ] == []
    assert [label for label in texts[:20] if escape_controls(label) not in answered] == []
    answers = json.loads(printed("answer", "--cells", "agent", "--json"))["answers"]
    assert [row["cell"][-len(label) :] for row, label in zip(answers, texts, strict=True)] == texts


@pytest.mark.slow
def test_refusals_escape_terminal_characters(releases):
    where = ["answer", str(releases / "given"), "--where", "agent=\x1b[2J\u202e"]
    command = [sys.executable, "-c", "from leastnoise._cli import main; main()", *where]
    refused = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, timeout=HANGS
    )
    assert refused.returncode == 2, refused.stderr
    assert ACTED_ON.findall(refused.stderr) == []


def test_reprs_escape_control_characters():
    domain = ln.Domain(
        agent=list(NASTY), pay=ln.Integers(0, 9), measures={"m": ln.Measure("pay", 0, 9)}
    )
    rows = pd.DataFrame({"agent": NASTY * 20, "pay": 5})
    release = ln.release(
        ln.plan(ln.mean_queries(domain, "m", by=["agent"], size=20 * len(NASTY)), ln.PureDP(9)),
        rows,
        seed=1,
    )
    shown = (release, *release.statistics, *release.tables, ln.means(release, "m", by=["agent"]))
    assert ACTED_ON.findall(" ".join(map(repr, (domain, *shown)))) == []
    for representation in shown:
        assert {"script", "img"}.isdisjoint(Page(representation._repr_html_()).tags)


@pytest.mark.slow
def test_charts_hold_no_elements_of_labels(release_folder, monkeypatch):
    monkeypatch.delenv("LEASTNOISE_CHARTS", raising=False)
    chart = ln.read_release(release_folder).plot("q1")
    text = chart.to_html()
    assert "img" not in Page(text).tags
    assert not re.search(r"</script><img|<!--", text)
    vega = json.loads(json.dumps(chart.to_dict()).replace("\\u2060", ""))
    pictures = render_svg([vega], [("q1", NASTY[8], NASTY[8])])
    # SVG does not allow control characters, so the report has no picture of them.
    assert release_folder.name == "given" or None not in pictures
    for svg in filter(None, pictures):
        drawn = ET.fromstring(svg)  # noqa: S314 - of our own
        assert not [
            element
            for element in drawn.iter()
            if element.tag.rpartition("}")[2] in {"script", "img", "foreignObject"}
        ]


TAG = "<script>alert(1)</script>"
LINK = "[x](javascript:alert(1))"
NAMES = (TAG, LINK, "=1+1", "@a", "-b", "<!--", "]]>", "a|b", "`c`")


@pytest.fixture(scope="module")
def hostile_names(tmp_path_factory):
    """A release whose attributes, measures, columns, labels and texts for readers are hostile."""
    folder = tmp_path_factory.mktemp("names")
    domain = ln.Domain(
        {name: ln.Categories([f"1{name}", name]) for name in NAMES},
        measures={f"pay {TAG}": ln.Measure(TAG, 0, 9)},
    )
    workload = ln.marginals(domain, ways=1) + ln.mean_queries(domain, f"pay {TAG}", by=[LINK])
    rows = pd.DataFrame({name: [name] * 9 for name in NAMES}).assign(**{f"id {TAG}": range(9)})
    rows[f"pay {TAG}"] = 1
    privacy = ln.Privacy(ln.PureDP(1), unit_column=f"id {TAG}", max_rows=1)
    options = ln.Options(
        formats=("csv", "parquet", "xlsx", "sdmx"),
        title=f"{TAG} {LINK}",
        source=TAG,
        agency=TAG,
        contact=f"{LINK} {TAG}",
    )
    ln.release(ln.plan(workload, privacy), rows, seed=1, out=folder / "out", options=options)
    return folder / "out"


@pytest.mark.parametrize("form", ["review", "notebook"])
def test_markdown_of_hostile_names_is_plain_text(hostile_names, form):
    import markdown

    text = ln.export(hostile_names, form)
    if form == "notebook":
        cells = json.loads(text)["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        text = "\n\n".join(texts)
    page = Page(markdown.markdown(text))
    assert not {"script", "a", "img"} & {*page.tags}
    assert page.links == []
    assert TAG in "".join(page.words)


def test_files_of_hostile_names_are_inert(hostile_names):
    page = Page((hostile_names / "report.html").read_text(encoding="utf-8"))
    assert page.tags.count("script") == 1
    assert not [link for link in page.links if link.startswith("javascript")]
    ET.parse(hostile_names / "structure.sdmx.xml")  # noqa: S314 - our own
    books = [
        openpyxl.load_workbook(hostile_names / file)
        for file in ("answers.xlsx", "publication.xlsx")
    ]
    sheets = [sheet for book in books for sheet in book]
    assert not [
        cell
        for sheet in sheets
        for row in sheet.iter_rows()
        for cell in row
        if cell.data_type == "f"
    ]
    for path in (hostile_names / "answers").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            texts = [text for row in csv.reader(file) for text in row]
        assert not [text for text in texts if text[:1] in ("=", "@") or text[:2] == "-b"], path


def test_report_saves_tables_by_the_same_rule():
    """The rule of ``report.js``, run by Node over the same texts."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed (make machine, as root)")
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    (rule,) = re.findall(r"^ *(const inert = .*)$", script, re.MULTILINE)
    rng = random.Random(1)
    texts = [
        *NASTY,
        *HARMLESS,
        *(
            "".join(rng.choices("'=+-@\t\r\n 19.a,\uff1d\uff0d", k=rng.randrange(6)))
            for _ in range(2000)
        ),
    ]
    program = f"{rule}\nconsole.log(JSON.stringify({json.dumps(texts)}.map(inert)));"
    done = subprocess.run(
        [node, "-e", program], capture_output=True, text=True, check=True, timeout=HANGS
    )
    assert json.loads(done.stdout) == [make_inert(text) for text in texts]
    assert "slice(0, keys).map(inert)" in script
    pages = [path.read_text(encoding="utf-8") for path in (TEMPLATES.parents[1]).rglob("*.js")]
    assert len(pages) >= 4
    # The script sets texts as text, not as HTML.
    assert not [
        1
        for page in pages
        if re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", page)
    ]
