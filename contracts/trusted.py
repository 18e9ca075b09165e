"""The trusted code, which must be right for a release to be private.

    python -m contracts.trusted        lines of code of each package and file

Trusted is all code that sees rows, counts or noise before they are added, that computes a cost, or
that keeps or chooses the ledger. All that such code imports is trusted too, except `HELPERS`: what
these files return is checked by the trusted code that calls them, or is no longer private. So a
trusted file imports trusted files, helpers, NumPy and the standard library, and a reader also the
library that reads its format. The `__init__.py` of a package only hands names on.
`tests/contracts/test_trusted.py` checks all this.
"""

from collections.abc import Iterator
from pathlib import Path

from contracts.sources import code_lines

FOLDER = Path(__file__).parents[1] / "src" / "leastnoise"
TRUSTED = (
    "_kernel",
    "_table",
    "_adapters",
    "_measurements",
    "_linop",
    "_accounting",
    "_domain",
    "_check",
)
# The file that chooses the ledger that pays; the kernel takes the ledger as it is given.
CHOOSES = "_session/_ledgers.py"
READERS = "_adapters/"
READING_LIBRARIES = {"adbc_driver_postgresql", "duckdb", "narwhals", "pyarrow", "sqlglot"}

_MESSAGES = "messages"
# Files that trusted code may import though they are not trusted, each with the reason.
HELPERS = {
    "_accounting/_alpha.py": "the order of a bound that holds at every order",
    "_accounting/_read.py": "JSON values, which the ledger writes again and compares",
    "_accounting/_words.py": _MESSAGES,
    "_adapters/_pairs.py": "refusals by declared types, before anything is paid; what they let pass is read as ever",
    "_adapters/_places.py": "the files that a path means, which `_files` checks; messages",
    "_check/_words.py": "public values as text for people",
    "_domain/_kind.py": "public kinds of attributes; `Rule` refuses a cell that is not among theirs",
    "_domain/_rules.py": "public rules of attributes; `Rule` refuses a cell that is not among theirs",
    "_domain/_written.py": "public settings of reading as text; `Reading` checks its parts",
    "_kernel/_ledger_signs.py": "which process makes a release; the rows of the ledger prevent a second draw",
    "_kernel/_outcome.py": "noisy outcomes as text",
    "_kernel/_words.py": _MESSAGES,
    "_linop/_plane_order.py": "trees of blocks, which the kernel checks",
    "_measurements/_headroom.py": "bounds within which answers are exact; beyond them they are wrong and leak nothing",
    "_measurements/_written.py": "measurements and observations as text; a recorded step has its charge beside it",
    "_session/_ledger_words.py": _MESSAGES,
    "_progress.py": "the line of progress, which is handed whole per cents (E13)",
    "_table/_share.py": "which tables are counted in one pass; the kernel refuses a table without an attribute",
}
# Files of trusted packages that no trusted file imports, each with the reason why it may be there.
APART = {
    "_adapters/_schema.py": "schemas for drafts of specs, on which no release depends",
    "_domain/_dates.py": "public kinds of attributes",
    "_domain/_kinds.py": "public kinds of attributes",
    "_domain/_labels.py": "names of cells in public queries; no row is read by them",
    "_domain/_levels.py": "public maps of the cells of an attribute to coarser ones",
    "_kernel/_seeded.py": "seeded noise, which is never paid for",
    "_linop/_packed.py": "operators and noisy answers as text",
    "_linop/_transposes.py": "transposes, which no column sum needs",
}


def trusted_files(folder: Path = FOLDER) -> list[str]:
    """Return the paths of all trusted files, from the folder of the package."""
    files = [
        path.relative_to(folder).as_posix()
        for package in TRUSTED
        for path in sorted((folder / package).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    return [file for file in [*files, CHOOSES] if file not in {*HELPERS, *APART}]


def lines_of_code(folder: Path = FOLDER) -> Iterator[tuple[str, int]]:
    """Give each trusted file and its number of lines of code."""
    for file in trusted_files(folder):
        yield file, len(code_lines((folder / file).read_text(encoding="utf-8")))


def main() -> None:
    """Print the lines of code."""
    lines = dict(lines_of_code())
    for package in (*TRUSTED, "_session"):
        print(f"{package:16}{sum(lines[file] for file in lines if file.startswith(package)):6}")
    for file, number in lines.items():
        print(f"    {file:40}{number:6}")
    print(f"{'in all':16}{sum(lines.values()):6}")


if __name__ == "__main__":
    main()
