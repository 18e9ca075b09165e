"""The trusted code, which must be right for a release to be private.

    python -m contracts.trusted        lines of code of each folder and file

Trusted is all code that sees rows, counts or noise before they are added, that computes a cost, or
that keeps or chooses the ledger. All of it is in `leastnoise._trusted`, which imports nothing else
of the package (the contracts in `pyproject.toml`). What the files in `HELPERS` return is checked by
the trusted code that calls them, or is no longer private. `tests/contracts/test_trusted.py` checks
that no other code gets in.
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
LOCKS = "_trusted/check/locks.py"
LOCKING_LIBRARIES = {"portalocker"}
READING_LIBRARIES = {"adbc_driver_postgresql", "duckdb", "narwhals", "pyarrow", "sqlglot"}

# Files of the folder that need not be right for a release to be private, each with the reason.
HELPERS = {
    "_trusted/accounting/_alpha.py": "the order of a bound that holds at every order",
    "_trusted/accounting/_cost_json.py": "JSON values, which the ledger writes again and compares",
    "_trusted/accounting/_near.py": "where searches start, whose results are decided by other code",
    "_trusted/accounting/_budget_texts.py": "budgets and charges as text for people",
    "_trusted/check/_value_texts.py": "public values as text for people",
    LOCKS: "which process waits; the rows of the ledger prevent a second draw",
    "_trusted/domain/_column_types.py": (
        "refusals by declared types; what they let pass is read as ever"
    ),
    "_trusted/domain/_kind.py": (
        "public kinds of attributes; `Rule` refuses a cell that is not among theirs"
    ),
    "_trusted/domain/_labels.py": "names of cells in public queries; no row is read by them",
    "_trusted/domain/_levels.py": "public maps of the cells of an attribute to coarser ones",
    "_trusted/domain/_reading_checks.py": (
        "public settings of reading as text; `Reading` checks its parts"
    ),
    "_trusted/kernel/_outcome.py": "noisy outcomes as text",
    "_trusted/kernel/_run_locks.py": (
        "which process makes a release; the rows of the ledger prevent a second draw"
    ),
    "_trusted/kernel/_seeded.py": "seeded noise, which is never paid for",
    "_trusted/linop/_packed.py": "operators and noisy answers as text",
    "_trusted/linop/_plane_order.py": "trees of blocks, which the kernel checks",
    "_trusted/linop/_transposes.py": "transposes, which no column sum needs",
    "_trusted/measurements/_headroom.py": (
        "bounds within which answers are exact; beyond them they are wrong and leak nothing"
    ),
    "_trusted/measurements/_measurements_json.py": (
        "measurements and observations as text; a recorded step is stored with its charge"
    ),
    "_trusted/reading/_column_types.py": (
        "what columns hold by their declared types; no value is read by it"
    ),
    "_trusted/reading/_connections.py": "which sentence explains a failed connection",
    "_trusted/reading/_locations.py": (
        "the files that a path means, which `_files` checks; messages"
    ),
    "_trusted/table/_share.py": (
        "which tables are counted in one pass; the kernel refuses a table without an attribute"
    ),
}


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
