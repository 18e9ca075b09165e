"""What the README and the examples show is what the program does."""

import re
import shlex
from pathlib import Path

from leastnoise._cli import _demo as demo_module
from leastnoise._cli import load_command, program
from leastnoise._session import Ledger
from leastnoise._trusted.accounting import Privacy, PureDP

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


def demonstrated(folder: Path) -> Ledger:
    """What `make demo` leaves, of fewer people and with a smaller question, which is quicker."""
    made = folder / "demo-release" / "1"
    made.mkdir(parents=True)
    demo_module.write_survey(demo_module.generate_survey(3000), made / "people.parquet")
    spec = demo_module._SPEC.replace('"auto"', '"marginals"').replace("count = 500", "count = 10")
    spec = spec.replace('of = ["sex", "age", "region", "education"]', 'of = ["sex", "region"]')
    (made / "survey.toml").write_text(spec, encoding="utf-8")
    ledger = Ledger.create(
        made / "people.ledger", "people", Privacy(PureDP(1), unit_column="person_id")
    )
    ledger.add_spent(PureDP(1), note="the demo's own release")
    return ledger


def test_readme_commands_and_python_run_in_order(folder, run, capsys):
    ledger = demonstrated(folder)
    (folder / "people.toml").unlink()
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len([line for line in block.splitlines() if line]) <= 12
    commands = [
        shlex.split(line, comments=True)
        for line in PAGE.replace(block, "").splitlines()
        if line.startswith("    ")
    ]
    assert commands[:3] == [["make", "demo"], ["make", "test"], [".", ".venv/bin/activate"]]
    names = ["init", "plan", "ledger", "release", "ledger"]
    assert [command[:2] for command in commands[3:]] == [["leastnoise", name] for name in names]
    for command in commands[3:]:
        run.done(*command[1:])
    assert (folder / "release" / "report.html").exists()
    # One strategy is quicker than all.
    call = 'unit_column="person_id"))'
    assert call in block
    quick = block.replace(call, f'{call[:-1]}, strategy="marginals")')
    capsys.readouterr()
    exec(compile(quick, "README.md", "exec"), {})  # noqa: S102 - our own page
    out = capsys.readouterr().out
    assert re.search(r"^sex x age: 160 answers, standard error \d+\.\d$", out, flags=re.MULTILINE)
    assert "noise_std" in out
    assert (folder / "demo-python" / "report.html").exists()
    # The guard and the rest of the command's release, then the release from Python.
    kinds = ["spent", "budget", "release", "release", "budget", "release"]
    assert [entry.kind for entry in ledger.entries()] == kinds
    assert ledger.left().epsilon == 0


def test_the_picture_in_the_readme_is_there_and_small():
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    assert 10_000 < (ROOT / picture).stat().st_size < 300_000


def test_the_example_spec_can_be_planned(folder, run):
    text = (ROOT / "examples" / "people.toml").read_text(encoding="utf-8")
    assert 'strategy = "auto"' in text
    (folder / "example.toml").write_text(
        text.replace('"auto"', '"marginals"'), encoding="utf-8"
    )  # one strategy is quicker than all
    assert "sum of pay by region" in run.done("plan", "example.toml").out


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
