"""How much code must be right for a release to be private, counted, with a ceiling that only goes down.

    python -m contracts.trusted        lines of code a package and a file

Trusted is everything that sees rows, counts or noise before they are added, that computes a cost, keeps the ledger or chooses it, and all
that such code imports: a package is in the list, or the trusted files do not import it. In these packages a file that `BESIDE` names is not
trusted, and no trusted file imports from it but those in `ASKED` (`test_trusted.py` checks both). What it makes reaches trusted code as a
value of a class that checks it again, or is not private any more. The face of a package (`__init__.py`) hands names on and does nothing
else, which is checked too.
"""

from collections.abc import Iterator
from pathlib import Path

from contracts.sources import code_lines

FOLDER = Path(__file__).parents[1] / "src" / "leastnoise"
TRUSTED = ("_kernel", "_table", "_adapters", "_measurements", "_linop", "_accounting", "_domain", "_check")
CHOOSES = "_session/_ledgers.py"  # the ledger that pays, which the kernel takes as it is given
# Not trusted, and why nobody needs to believe it.
BESIDE = {
    # What users may write of an attribute, its labels, levels and JSON, and which table its values find their cells by: public, and made
    # without a row. `Domain` asks for the number of cells once, and `Rule` refuses a table with a cell that is not among them. Which marks
    # and spellings a reading may have: a `Reading` looks that its parts are texts and true or false, and reads each value by itself.
    "_domain": ("_kind.py", "_kinds.py", "_dates.py", "_rules.py", "_json.py", "_written.py"),
    # Transposes that no column sum is computed with; operators and noisy answers as text; trees of blocks, which the kernel checks.
    "_linop": ("_transposes.py", "_packed.py", "_plane_order.py"),
    # The text of measurements, and what comes of them: a recorded step has its charge beside the fingerprint, an observation its noise.
    # Bounds within which answers are right, beyond which they would be wrong and no leak.
    "_measurements": ("_written.py", "_headroom.py"),
    # Noisy outcomes as text; what is said of a ledger and of a series; who makes a release now: the ledger's rows keep it from being drawn
    # twice. Noise from a seed, with which nothing is paid for.
    "_kernel": ("_outcome.py", "_words.py", "_ledger_signs.py", "_seeded.py"),
    # Which tables are counted in one pass: the kernel refuses one that lacks what is summed out of it.
    "_table": ("_share.py",),
    # Names and types of columns, for drafts: no release depends on it. What users say of where their data are: which unit a second table
    # needs and which ledger pays are asked of it in `_location`, and `_csv` looks at the delimiter and at the size of the table of
    # characters. Which files a path means: `_files` looks that they are below it and of their names' kind, and that none is read twice.
    "_adapters": ("_columns.py", "_paths.py", "_places.py", "_words.py"),
    # Where a bound is nearly least that holds everywhere; what JSON says, of which the ledger looks whether it is written so; sentences.
    "_accounting": ("_alpha.py", "_read.py", "_words.py"),
    # Public values as texts for people, by which nothing is decided.
    "_check": ("_words.py",),
}
# Which trusted file asks which of these. Of the first only what has its noise goes there, as of observations. Of the next two any answer
# will do, and so of what bounds answers, and of what says how a column may be read. The ledger
# looks whether what was read is written as the text that it came from. How numbers are written is a pattern, which remembers nothing. Where
# data are is what their user says. Of a kind a domain asks its size once and a rule, and checks both. An engine counts the tables of groups
# as they are proposed, and the kernel looks in each for what it is asked for. It looks whether the blocks of a table are those of a tree
# over all its cells.
ASKED = {
    ("_kernel/_series.py", "_kernel/_outcome.py"),
    ("_accounting/_deltas.py", "_accounting/_alpha.py"),
    ("_kernel/_series.py", "_measurements/_written.py"),
    ("_measurements/_measurements.py", "_measurements/_headroom.py"),
    ("_domain/_reading.py", "_domain/_written.py"),
    ("_kernel/_ledger_file.py", "_accounting/_read.py"),
    ("_adapters/_values.py", "_domain/_rules.py"),
    *(
        (f"_adapters/{name}.py", "_adapters/_places.py")
        for name in ("_location", "_read", "_csv", "_files", "_frames", "_join", "_postgres")
    ),
    ("_domain/_domain.py", "_domain/_kind.py"),
    *((f"_adapters/_{name}.py", "_adapters/_paths.py") for name in ("files", "read")),
    ("_kernel/_count.py", "_table/_share.py"),
    ("_kernel/_plane.py", "_linop/_plane_order.py"),
    ("_kernel/_ledger.py", "_kernel/_ledger_signs.py"),
    ("_adapters/_engine.py", "_table/_share.py"),
    # What is said, by which nothing is decided.
    *(
        (f"_adapters/_{name}.py", words)
        for name in ("csv", "files", "frames", "location", "postgres", "read", "spark")
        for words in ("_adapters/_words.py", "_check/_words.py")
    ),
    *((f"_kernel/_{name}.py", "_kernel/_words.py") for name in ("ledger", "ledger_file", "ledger_run", "series", "periods")),
    ("_accounting/_cost.py", "_accounting/_words.py"),
    ("_session/_ledgers.py", "_session/_ledger_words.py"),
    *(
        (file, "_check/_words.py")
        for file in (
            "_accounting/_cost.py",
            "_check/_arguments.py",
            "_domain/_measure.py",
            "_kernel/_ledger.py",
        )
    ),
}
# Folders and patterns of files, and counting in an engine (SQL of every kind, a file an engine), are on this side too (about 700 lines).
# Dates, edges, decimals, levels and how texts are read: what decides a row's cell is all on this side (about 700 lines);
# counting how rows fit, for the data holder, left for `_holder` (125): no release depends on it.
# Budgets that are raised, shared out or for a period, and what was spent elsewhere: what a ledger allows is here (about 110 lines).
# Toeplitz strategies, near-optimal prefix sums under Gaussian noise at any size (57).
# Strategies within blocks and over their sums: near-optimal prefix sums and ranges under Laplace noise at any size (64).
# Bounds on the rows of a unit in one cell: kept so by every source, and what they are worth (130).
# Categories that nobody can list: their noisy numbers and the threshold, the proof of both, and how keys are read (290).
# Times, and texts without case or blanks, counted where they are: the same cells by SQL (118).
# Tables of Ibis: an engine's words in one file, BigQuery's and Snowflake's among them (105); DuckDB's files (25).
# What a ledger shows of itself: read with a short wait, and never an error in a debugger (14).
# A second table joined to the first: what may be joined, how partners are found, and, for the data holder, how many are (176).
# Distances from both ends of a measure's values: counts and sums in one block, combined in the kernel (20).
# Short fields of CSV files told apart as whole numbers, which is what makes reading them as fast as DuckDB's (15).
# Keys counted by engines: their texts as SQL, closed by default (63). Rows of Spark, held a partition at a time (27).
# Searches for categories on keys that are made up, for audits (10).
# Blocks that are alike are checked once, and only those (2); the name of a measure is text and nothing like it (1).
# What is no text in an engine is taken for nothing before it is changed (2).
# Two tables joined where they are: in PostgreSQL, Spark and behind Ibis, whose connections say whether one query has both (89).
# Noisy numbers written in as few whole bytes each as they need, instead of compressed (13).
# Dictionaries and runs of every type of Arrow (10).
# Blocks that are alike are answered at once, and what was drawn is recorded in parts, so that memory holds it once (53).
# Counts of units: a measure of zeros and ones, made by every source, and what rows and units cost together (65).
# What chooses the ledger that pays, which the session had before (107); without what converted ledgers of earlier formats (50).
# What the parts of a rule are: of exact classes, copied and sealed (34).
# What a list of files and an encoding must be, whoever made them (10).
# Series drawn period by period: what is frozen, its private file, and the noise of a period, drawn before it meets a count (133).
CEILING = 5_400


def lines_of_code(folder: Path = FOLDER) -> Iterator[tuple[str, int]]:
    """Each trusted file and its lines of code."""
    for path in [*(path for package in TRUSTED for path in sorted((folder / package).rglob("*.py"))), folder / CHOOSES]:
        if path.name in ("__init__.py", *BESIDE.get(path.parent.name, ())):
            continue
        yield path.relative_to(folder).as_posix(), len(code_lines(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    counted = dict(lines_of_code())
    for package in (*TRUSTED, "_session"):
        print(f"{package:16}{sum(lines for name, lines in counted.items() if name.startswith(f'{package}/')):6}")
    for name, lines in counted.items():
        print(f"    {name:40}{lines:6}")
    print(f"{'in all':16}{sum(counted.values()):6} of at most {CEILING}")
