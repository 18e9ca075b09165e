"""Checks that the documentation agrees with the code."""

import math
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from docs.images import budget, gallery
from docs.scripts import architecture, site

import leastnoise as ln
from leastnoise._cli import load_command, main, program
from waiting import HANGS

ROOT = Path(__file__).parents[1]


def test_architecture_picture_matches_the_code():
    assert architecture.PICTURE.read_text("utf-8") == architecture.picture(), "run `make pictures`"


def test_folder_table_matches_the_code():
    text = architecture.PAGE.read_text("utf-8")
    assert text == architecture.page(text), "run `make pictures`"
    assert len(list(architecture.folders())) > 20


def test_words_of_the_architecture_are_in_the_code():
    assert not architecture.missing_words(), "name the file and the name that define them now"


def test_first_glossary_words_are_explained():
    terms = site.glossary()
    assert {"prefix", "rmse", "epsilon", "privacy unit"} <= set(terms)
    page = (
        '<h1>Prefix</h1><p>A <a href="#">prefix</a>, <code>prefix</code>, prefix; prefixes <img '
        'title="rho"/> by rho</p>'
    )
    shown = site.explained(page, "../notation.html")
    link = '<a class="term" href="../notation.html#in-plain-words" title="{}">{}</a>'
    expected = page.replace(
        "<code>prefix", "<code>" + link.format(terms["prefix"], "prefix")
    ).replace("by rho", "by " + link.format(terms["rho"], "rho"))
    assert shown == expected


# --- the glossary and the spellings of the pages -------------------------------------------------

NOTATION = ROOT / "docs" / "notation.md"
PROSE = sorted(
    [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "changelog.d").glob("*.md")]
)
# Code is left out of a page in this order; line breaks stay, so that line numbers are right.
NO_PROSE = (
    re.compile(r"^```.*?^```[ ]*$", flags=re.DOTALL | re.MULTILINE),
    re.compile(r"^## Spellings\n.*?(?=^## |\Z)", flags=re.DOTALL | re.MULTILINE),
    re.compile(r"^ {4}(?! *(?:[-*]|\d+\.) ).*$", flags=re.MULTILINE),
    re.compile(r"`[^`]*`"),
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"https?://\S+"),
)


def section(title):
    """Return one section of the page on notation."""
    return NOTATION.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def glossary_terms():
    """Return the explained terms, the names of the symbols and the terms that are kept apart."""
    names = re.findall(r"^\| ([\w ]+) \|(?:[^|]*\|){3}$", section("Symbols"), flags=re.MULTILINE)
    apart = re.findall(r"\*\*([\w -]+)\*\*", section("Terms kept apart"))
    return {*site.glossary(), *(set(names) - {"name"}), *(term.lower() for term in apart)}


def other_spellings():
    """Return the term to write for each spelling that the page on notation lists beside it."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section("Spellings"), flags=re.MULTILINE)
    return {
        other: term for term, others in rows[1:] for other in others.split(", ") if term != "---"
    }


def misspelt(text):
    """List the lines of a page with another spelling of a term, and the term to write."""
    for pattern in NO_PROSE:
        text = pattern.sub(lambda match: "\n" * match.group().count("\n"), text)
    complaints = []
    for other, term in other_spellings().items():
        spelling = r"\s+".join(map(re.escape, other.split()))
        # Capitals decide only where the two differ in nothing else, as in NumPy.
        case = 0 if other.lower() == term.lower() or other.isupper() else re.IGNORECASE
        for match in re.finditer(rf"\b{spelling}\b", text, flags=case):
            line = text.count("\n", 0, match.start()) + 1
            complaints.append(f"line {line}: write {term!r} instead of {match.group()!r}")
    return complaints


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_uses_the_terms_of_the_glossary(page):
    assert misspelt(page.read_text("utf-8")) == []


def test_other_spellings_are_detected():
    text = (
        "A data set.\n\n```python\ndataset = 1\n```\n\nA\n"
        "dataset, `dataset`, [x](dataset.md); numpy\n"
    )
    assert misspelt(text) == [
        "line 8: write 'data set' instead of 'dataset'",
        "line 8: write 'NumPy' instead of 'numpy'",
    ]
    assert misspelt("Here is the plan\nthat does not look.") == [
        "line 1: write 'data-independent' instead of 'plan\\nthat does not look'"
    ]


def test_glossary_is_short_and_its_terms_are_used():
    terms = glossary_terms()
    assert {"epsilon", "block", "query set", "tilt", "data-dependent"} <= terms
    assert len(terms) <= 60
    texts = [page.read_text("utf-8").lower() for page in PROSE if page != NOTATION]
    pages = " ".join(" ".join(text.split()) for text in texts)
    assert [term for term in terms if not re.search(rf"\b{re.escape(term)}", pages)] == []


def test_pages_link_to_sources_outside_the_site():
    moved = site.contributing("[a](docs/spec.md#rows), [b](src/x.py)")
    assert moved == "[a](spec.md#rows), [b](../src/x.py)"
    page = "[a](../src/x.py), [b](../changelog.d/README.md), [c](../CONTRIBUTING.md#up)"
    assert site.on_page_markdown(page) == (
        f"[a]({site.SOURCES}src/x.py), [b]({site.SOURCES}changelog.d/README.md), "
        "[c](contributing.md#up)"
    )


def test_architecture_picture_shows_a_new_import(monkeypatch):
    before = architecture.picture()
    monkeypatch.setattr(architecture, "imports", lambda: {("_cli", "_trusted/table")})
    assert architecture.picture() != before


def test_every_public_name_is_in_the_reference():
    shown = re.findall(
        r"^::: leastnoise\.(\w+)$",
        (ROOT / "docs" / "python.md").read_text("utf-8"),
        flags=re.MULTILINE,
    )
    assert sorted(shown) == sorted(ln.__all__)


def test_architecture_page_lists_every_folder():
    page = architecture.PAGE.read_text("utf-8")
    folders = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.glob("*/**/*.py")
        if not path.relative_to(ROOT).parts[0].startswith(".")
    }
    assert {
        name for name in folders - {"build", "site", "src"} if f"| `{name}` |" not in page
    } == set()


def crowded_listings(text):
    """Return the lines of indented blocks that name two commands of the program."""
    lines = re.findall(r"^ {4}.*$", text, flags=re.MULTILINE)
    return [line for line in lines if len(re.findall(r"\bleastnoise [a-z-]+\b", line)) > 1]


def test_listings_have_one_command_a_line():
    texts = {page: re.sub(r"`[^`\n]*`", "", page.read_text("utf-8")) for page in PROSE}
    assert {page: lines for page in PROSE if (lines := crowded_listings(texts[page]))} == {}


def test_crowded_listings_are_detected():
    text = "    leastnoise plan S  shows the error leastnoise check S\n    leastnoise demo\n"
    assert crowded_listings(text) == [text.splitlines()[0]]


def test_commands_page_begins_a_line_with_every_command():
    listing = (ROOT / "docs" / "commands.md").read_text("utf-8").split("\n\n")[1]
    shown = {
        " ".join(re.findall(r"^ {4}leastnoise (ledger \w+|[\w-]+) ", line)[:1])
        for line in listing.splitlines()
    }
    ledger = {f"ledger {name}" for name in load_command("ledger").commands}
    assert shown == {*program.commands, *ledger} - {"ledger"}


FILES = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
WITH_COMMANDS = [
    page for page in sorted((ROOT / "docs").glob("*.md")) if CONSOLE.search(page.read_text("utf-8"))
]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_page_commands_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    text = page.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    interrupt = signal.getsignal(signal.SIGINT)
    for name, content in FILES.findall(text):
        (tmp_path / name).write_text(content, encoding="utf-8")
    for block in CONSOLE.findall(text):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *expected = step.splitlines()
            program, *arguments = shlex.split(command)
            if program == "python":
                subprocess.run([sys.executable, *arguments], check=True, timeout=HANGS)
                continue
            monkeypatch.setattr(sys, "argv", [program, *arguments])
            with pytest.raises(SystemExit) as stop:
                main()
            printed = capsys.readouterr()
            assert not stop.value.code, f"{command}\n{printed.err}"
            assert [line for line in expected if line not in printed.out] == [], (
                f"{command}\n{printed.out}"
            )
    signal.signal(signal.SIGINT, interrupt)


def test_peer_code_on_pages_is_run_by_make_peers():
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)\n```$", page, flags=re.DOTALL | re.MULTILINE)
    peers = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "bench" / "peers").glob("peer_*.py")
    }
    run = {
        text.partition("# [page]\n")[2].partition("# [/page]\n")[0].strip("\n")
        for text in peers.values()
    }
    assert set(shown) == run
    assert len(run) == 5


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def numbers(text):
    """Return the numbers of a text."""
    return [float(number) for number in NUMBER.findall(text)]


def test_gallery_tasks_print_what_the_page_shows(tmp_path):
    tasks = gallery.read_tasks()
    assert len(tasks) >= 10
    outputs = list(gallery.run_tasks(tmp_path))
    for task, output in zip(tasks, outputs, strict=True):
        assert len([line for line in task.code.splitlines() if line]) <= 10, task.code
        # Plans of other machines may differ in the last digits of a scale, and so in their noise.
        assert NUMBER.sub("", output).split() == NUMBER.sub("", task.output).split(), task.code
        assert numbers(output) == pytest.approx(numbers(task.output), rel=0.15), task.code
    text = gallery.PAGE.read_text("utf-8")
    pictures = re.findall(r"images/gallery-(\w+\.svg)", text)
    assert pictures
    for picture in pictures:
        assert "</svg>" in (tmp_path / picture).read_text("utf-8")
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)[:-1]
    assert re.findall(r"^\| \[(.*?)\]", text, flags=re.MULTILINE) == titles


def test_budget_tables_are_on_the_page():
    lines = budget.PAGE.read_text("utf-8").splitlines()
    assert [row for row in budget.pure_rows() if row not in lines] == []
    assert [row for row in budget.gaussian_rows() if row not in lines] == []
    assert budget.PICTURE.exists()


@pytest.mark.parametrize("epsilon", budget.EPSILONS)
def test_budget_bounds_hold_for_every_attack(epsilon):
    """All likelihood-ratio tests of a count with discrete Laplace noise, with and without a row."""
    ratio = math.exp(-epsilon)
    span = 400
    noise = [(1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-span, span + 1)]
    # The probabilities of each output, for the true counts 1 and 0.
    present = [0.0, *noise]
    absent = [*noise, 0.0]
    for threshold in range(span - 5, span + 8):
        false_positives = sum(absent[threshold:])
        members_found = sum(present[threshold:])
        largest = budget.largest_true_positive_rate(false_positives, epsilon)
        assert members_found <= largest + 1e-9
        if threshold in (span + 1, span + 2):
            assert members_found == pytest.approx(largest)
    middle = slice(span - 20, span + 20)  # further away all probabilities round to 0
    for prior in budget.PRIORS:
        posteriors = [
            prior * here / (prior * here + (1 - prior) * away)
            for here, away in zip(present[middle], absent[middle], strict=True)
        ]
        assert max(posteriors) == pytest.approx(budget.largest_posterior(prior, epsilon))


def test_budget_rates_of_gaussian_noise():
    mu = 0.5
    width = 0.001
    density = [math.exp(-((x * width) ** 2) / 2) for x in range(-8000, 8001)]
    shift = round(mu / width)
    for threshold in (9000, 9645, 10326):  # about one sixth, 5% and 1% false positives
        false_positives = sum(density[threshold:]) / sum(density)
        members_found = sum(density[threshold - shift :]) / sum(density)
        expected = budget.gaussian_true_positive_rate(false_positives, mu)
        assert members_found == pytest.approx(expected, rel=2e-3)


def test_coming_from_states_the_expected_errors():
    people = ln.Domain(sex=["F", "M"], region=list("ABCDEFGH"), age=ln.Integers(0, 99))
    six_tables = ln.marginals(people, ways=1) + ln.marginals(people, ways=2)
    # One strategy is quicker than all; these are the ones that "auto" chooses.
    plans = {
        "leastnoise": ln.plan(ln.marginals(people, upto=2), ln.PureDP(1), strategy="covering"),
        'leastnoise with `objective="worst"`': ln.plan(
            six_tables, ln.PureDP(1), strategy="marginals", objective="worst"
        ),
    }
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    for name, plan in plans.items():
        tables = [table for table in plan.expected_error().tables if table.name != "total"]
        squares = sum(table.queries * table.rmse**2 for table in tables)
        overall = math.sqrt(squares / sum(table.queries for table in tables))
        errors = [f"{error:.1f}" for error in (overall, *(table.rmse for table in tables))]
        assert f"| {name} | {' | '.join(errors)} |" in page
