"""The trusted code, which must be right for a release to be private: which files it has, and a ceiling on its lines.

    python -m contracts.trusted        lines of code a package and a file

Trusted is all code that sees rows, counts or noise before they are added, that computes a cost, or
that keeps or chooses the ledger; and all that such code imports. In the trusted packages the files
of `BESIDE` are not trusted: what they make reaches trusted code as a value that is checked there,
or is not private any more. No trusted file imports from them but for the pairs in `ASKED`. The face
of a package (`__init__.py`) hands names on and does nothing else. `test_trusted.py` checks all
this.
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
CHOOSES = "_session/_ledgers.py"  # the ledger that pays, which the kernel takes as it is given
# Files of trusted packages that are not trusted, each with the reason.
BESIDE = {
    # Kinds of attributes, their labels, levels, JSON and rules: public, and made without a row.
    # `Domain` asks for the number of cells once, `Rule` refuses a table with a cell that is not
    # among them, and `Reading` checks its parts.
    "_domain": ("_kind.py", "_kinds.py", "_dates.py", "_rules.py", "_written.py"),
    # Transposes, which no column sum needs; operators and noisy answers as text; trees of blocks,
    # which the kernel checks.
    "_linop": ("_transposes.py", "_packed.py", "_plane_order.py"),
    # Observations, and measurements as text: a recorded step has its charge beside the fingerprint.
    # Bounds within which answers are exact:
    # beyond them they would be wrong and leak nothing.
    "_measurements": ("_written.py", "_headroom.py"),
    # Noisy outcomes as text; messages; which process makes a release: the ledger's rows prevent a
    # second draw; seeded noise, which is never paid for.
    "_kernel": ("_outcome.py", "_words.py", "_ledger_signs.py", "_seeded.py"),
    # Which tables are counted in one pass: the kernel refuses a table that lacks an attribute.
    "_table": ("_share.py",),
    # Columns for drafts, on which no release depends. What users say of their data: `_location` and
    # `_files` check it. Which files a path
    # means: `_files` checks folder, name and that none is read twice. Messages.
    "_adapters": ("_columns.py", "_places.py"),
    # The order of a bound that holds at every order; readers of JSON, whose values the ledger
    # writes again and compares; messages.
    "_accounting": ("_alpha.py", "_read.py", "_words.py"),
    # Public values as text for people.
    "_check": ("_words.py",),
}
# Pairs of a trusted file and a file of `BESIDE` that it imports from; `BESIDE` says why that is
# harmless.
ASKED = {
    ("_kernel/_series.py", "_kernel/_outcome.py"),
    ("_accounting/_deltas.py", "_accounting/_alpha.py"),
    ("_kernel/_series.py", "_measurements/_written.py"),
    ("_measurements/_measurements.py", "_measurements/_headroom.py"),
    ("_domain/_reading.py", "_domain/_written.py"),
    ("_kernel/_ledger_file.py", "_accounting/_read.py"),
    ("_adapters/_values.py", "_domain/_rules.py"),
    *(
        (f"_adapters/_{name}.py", "_adapters/_places.py")
        for name in ("location", "read", "files", "frames", "postgres", "spark")
    ),
    ("_domain/_domain.py", "_domain/_kind.py"),
    ("_kernel/_count.py", "_table/_share.py"),
    ("_kernel/_plane.py", "_linop/_plane_order.py"),
    ("_kernel/_ledger.py", "_kernel/_ledger_signs.py"),
    ("_adapters/_engine.py", "_table/_share.py"),
    # messages
    *(
        (f"_adapters/_{name}.py", "_check/_words.py")
        for name in ("files", "frames", "location", "postgres", "read", "spark")
    ),
    *(
        (f"_kernel/_{name}.py", "_kernel/_words.py")
        for name in ("ledger", "ledger_file", "ledger_run", "series", "periods")
    ),
    ("_accounting/_cost.py", "_accounting/_words.py"),
    ("_session/_ledgers.py", "_session/_ledger_words.py"),
    *(
        (file, "_check/_words.py")
        for file in (
            "_accounting/_cost.py",
            "_check/_errors.py",
            "_domain/_measure.py",
            "_kernel/_ledger.py",
        )
    ),
}
# The most lines of code of the trusted files. Raise it only for a feature that cannot be outside
# them.
CEILING = 5_390


def lines_of_code(folder: Path = FOLDER) -> Iterator[tuple[str, int]]:
    """Each trusted file and its lines of code."""
    for path in [
        *(path for package in TRUSTED for path in sorted((folder / package).rglob("*.py"))),
        folder / CHOOSES,
    ]:
        if path.name in ("__init__.py", *BESIDE.get(path.parent.name, ())):
            continue
        yield path.relative_to(folder).as_posix(), len(code_lines(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    counted = dict(lines_of_code())
    for package in (*TRUSTED, "_session"):
        print(
            f"{package:16}{sum(lines for name, lines in counted.items() if name.startswith(f'{package}/')):6}"
        )
    for name, lines in counted.items():
        print(f"    {name:40}{lines:6}")
    print(f"{'in all':16}{sum(counted.values()):6}")
