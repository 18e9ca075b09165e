"""The trusted code, which must be right for a release to be private.

    python -m contracts.trusted        lines of code of each folder and file

Trusted is all code that sees rows, counts or noise before they are added, that computes a cost, or
that keeps or chooses the ledger. All of it is in `leastnoise._trusted`, which imports nothing else
of the package (the contracts in `pyproject.toml`). Only the folders `helpers` in it need no review:
the trusted code that calls them checks their results, or the results are no longer private.
`tests/contracts/test_trusted.py` checks that no other code gets in.
"""

from collections.abc import Iterator
from pathlib import Path

from contracts.sources import code_lines

FOLDER = Path(__file__).parents[1] / "src" / "leastnoise"
TRUSTED = tuple(
    f"_trusted/{folder.name}"
    for folder in sorted((FOLDER / "_trusted").iterdir())
    if (folder / "__init__.py").is_file()
)
READERS = "_trusted/reading/"
LOCKS = "_trusted/check/helpers/locks.py"
LOCKING_LIBRARIES = {"portalocker"}
READING_LIBRARIES = {"adbc_driver_postgresql", "duckdb", "narwhals", "pyarrow", "sqlglot"}

# Files of trusted folders that need not be right for a release to be private. Their docstrings say
# why.
HELPERS = tuple(
    path.relative_to(FOLDER).as_posix()
    for package in TRUSTED
    for path in sorted((FOLDER / package / "helpers").glob("*.py"))
    if path.name != "__init__.py"
)


def trusted_files(folder: Path = FOLDER) -> list[str]:
    """Return the paths of all trusted files, from the folder of the package."""
    files = [
        path.relative_to(folder).as_posix()
        for package in TRUSTED
        for path in sorted((folder / package).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    return [file for file in files if file not in HELPERS]


def lines_of_code(folder: Path = FOLDER) -> Iterator[tuple[str, int]]:
    """Yield each trusted file and its number of lines of code."""
    for file in trusted_files(folder):
        yield file, len(code_lines((folder / file).read_text(encoding="utf-8")))


def main() -> None:
    """Print the lines of code."""
    lines = dict(lines_of_code())
    for package in TRUSTED:
        print(f"{package:24}{sum(lines[file] for file in lines if file.startswith(package)):6}")
    for file, number in lines.items():
        print(f"    {file:44}{number:6}")
    print(f"{'in all':24}{sum(lines.values()):6}")


if __name__ == "__main__":
    main()
