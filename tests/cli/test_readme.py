"""The program does what the README and the examples show."""

import re
import shlex
from pathlib import Path

from leastnoise._cli import _demo as demo_module
from leastnoise._cli import load_command, program
from leastnoise._session import Ledger
from leastnoise._trusted.accounting import Privacy, PureDP

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


def write_demo(folder):
    """Write the data and the ledger that `make demo` leaves, of fewer people."""
    demo = folder / "demo-release" / "1"
    demo.mkdir(parents=True)
    demo_module.write_survey(demo_module.generate_survey(3000), demo / "people.parquet")
    ledger = Ledger.create(
        demo / "people.ledger", "people", Privacy(PureDP(1), unit_column="person_id")
    )
    ledger.add_spent(PureDP(1), note="the demo's own release")
    return ledger


def read_blocks(language):
    """Return the code blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def read_commands():
    """Return the commands of the README, without comments."""
    text = re.sub(r"^```\w+\n.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if line.startswith("    ")]
    return [shlex.split(line, comments=True) for line in lines]


def fill_in(draft, completed):
    """Replace the attributes of a draft that have something to fill in."""
    attributes = re.findall(r"^(\[domain\.\w+\]\n)(.*)\n", completed, flags=re.MULTILINE)
    for header, values in attributes:
        draft = re.sub(f"(?<={re.escape(header)}).*FILL IN.*", values, draft)
    assert "FILL IN" not in draft.partition("\n[source]\n")[2]
    return draft


def test_readme_releases_an_own_file_in_five_lines(folder, run):
    (folder / "people.toml").unlink()
    (folder / "people.ledger").unlink(missing_ok=True)
    regions = ["East", "North", "South", "West"]
    rows = [f"{'FM'[i % 2]},{18 + i % 70},{regions[i % 4]},{i * 37 % 90000}" for i in range(4000)]
    (folder / "people.csv").write_text("\n".join(["sex,age,region,income", *rows, ""]))
    commands = read_commands()
    set_up = ["git clone https://github.com/leastnoise/leastnoise", "cd leastnoise"]
    set_up += ["make demo", "make test", ". .venv/bin/activate"]
    assert commands[:5] == [line.split() for line in set_up]
    init, editor, plan, release, show = commands[5:]
    assert editor[1:] == ["people.toml"]
    run.succeeds(*init[1:])
    completed, added_tables = read_blocks("toml")
    spec = folder / "people.toml"
    draft = fill_in(spec.read_text(encoding="utf-8"), completed) + added_tables
    # One strategy is planned faster than all.
    spec.write_text(draft.replace('"auto"', '"marginals"'), encoding="utf-8")
    tables = run.succeeds(*plan[1:]).out
    assert "Expected error" in tables
    assert "sex x region" in tables
    assert "mean of pay by region" in tables
    run.succeeds(*release[1:])
    assert "region=East" in run.succeeds(*show[1:]).out
    assert (folder / "release" / "report.html").exists()


def test_readme_python_runs_on_the_demo(folder, capsys):
    ledger = write_demo(folder)
    (block,) = read_blocks("python")
    assert len([line for line in block.splitlines() if line]) <= 12
    # One strategy is quicker than all.
    call = 'unit_column="person_id"))'
    assert call in block
    quick = block.replace(call, f'{call[:-1]}, strategy="marginals")')
    capsys.readouterr()
    exec(compile(quick, "README.md", "exec"), {})  # noqa: S102 - our own page
    output = capsys.readouterr().out
    assert re.search(
        r"^sex x age: 160 answers, standard error \d+\.\d$", output, flags=re.MULTILINE
    )
    assert "noise_std" in output
    assert (folder / "demo-python" / "report.html").exists()
    assert [entry.kind for entry in ledger.entries()] == ["spent", "budget", "release"]
    assert ledger.left().epsilon == 0


def test_readme_picture_exists_and_is_small():
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    assert 10_000 < (ROOT / picture).stat().st_size < 300_000


def test_example_spec_can_be_planned(folder, run):
    text = (ROOT / "examples" / "people.toml").read_text(encoding="utf-8")
    assert 'strategy = "auto"' in text
    # One strategy is planned faster than all.
    (folder / "example.toml").write_text(text.replace('"auto"', '"marginals"'), encoding="utf-8")
    assert "sum of pay by region" in run.succeeds("plan", "example.toml").out


def test_commands_page_lists_every_command_and_option():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    commands = {name: load_command(name) for name in program.commands}
    for name, command in commands.items():
        assert command.get_short_help_str(100) == program.commands[name].get_short_help_str(100)
    commands |= commands["ledger"].commands
    assert {"plan", "release", "synthesize"} <= commands.keys()
    for name, command in commands.items():
        assert f"leastnoise {name}" in page or f"leastnoise ledger {name}" in page
        for option in (
            option
            for parameter in command.params
            for option in parameter.opts
            if option.startswith("--")
        ):
            assert option in page, (name, option)
