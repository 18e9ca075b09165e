"""What the README and the examples show is what the program does."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leastnoise._cli import _demo as demo_module
from leastnoise._session import Ledger

ROOT = Path(__file__).parents[2]
Run = Callable[..., Any]


PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_in_the_readme_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in block.splitlines() if line]
    assert len(lines) <= 12
    data = folder / "demo-release" / "1" / "people.parquet"
    data.parent.mkdir(parents=True)
    demo_module.write_survey(demo_module.survey(3000), data)
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own page
    out = capsys.readouterr().out
    assert re.search(r"^sex x age: 160 answers, standard error \d+\.\d$", out, flags=re.MULTILINE)
    assert "noise_std" in out
    assert [entry.state for entry in Ledger.open(folder / "demo.ledger").entries()] == ["sealed"]
    assert (folder / "demo-python" / "report.html").exists()


def test_the_commands_in_the_readme_work_in_their_order_after_its_example(folder: Path, run: Run) -> None:
    assert PAGE.index(". .venv/bin/activate") < PAGE.index("```python") < PAGE.index("    leastnoise init")
    for made in re.findall(r'(?:ledger|out)="([^"]+)"', PAGE):  # what the example leaves behind
        (folder / made).mkdir()
    filled = (folder / "people.toml").read_text(encoding="utf-8")
    (folder / "people.toml").unlink()
    commands = [line.split("#")[0].split()[1:] for line in PAGE.splitlines() if line.startswith("    leastnoise ")]
    assert [command[0] for command in commands] == ["init", "plan", "compare", "release", "ledger"]
    for command in commands:
        result = run(*command)
        assert result.code == 0, (command, result.err)
        if command[0] == "init":
            (folder / "people.toml").write_text(
                filled.split("[[workload]]")[0] + "[[workload]]\nmarginals = { ways = 1 }\n", encoding="utf-8"
            )
    assert (folder / "release" / "report.html").exists()


def test_the_picture_in_the_readme_is_there_and_small() -> None:
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert 10_000 < (ROOT / picture).stat().st_size < 300_000


def test_the_example_spec_can_be_planned(folder: Path, run: Run) -> None:
    text = (ROOT / "examples" / "people.toml").read_text(encoding="utf-8")
    assert 'strategy = "auto"' in text
    (folder / "example.toml").write_text(text.replace('"auto"', '"marginals"'), encoding="utf-8")  # one strategy is quicker than all
    result = run("plan", "example.toml")
    assert (result.code, "sum of pay by region" in result.out) == (0, True)


def test_the_page_of_commands_names_every_command_option_and_key(run: Run) -> None:
    from leastnoise._cli import _main

    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    commands = {**_main.program.commands, **_main.program.commands["ledger"].commands}
    assert len(commands) == 12
    for name, command in commands.items():
        assert f"leastnoise {name}" in page or f"leastnoise ledger {name}" in page
        for option in (option for parameter in command.params for option in parameter.opts if option.startswith("--")):
            assert option in page, (name, option)
