"""Draw the picture and write the tables of docs/architecture.md.

Both are derived from the code: the packages in the layers of pyproject.toml, and their imports.

    python -m docs.scripts.architecture     write docs/images/architecture.svg and the tables
"""

import ast
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

from contracts.trusted import TRUSTED

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "leastnoise"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
PAGE = ROOT / "docs" / "architecture.md"
PRIVATE = ("_trusted/reading", "_trusted/kernel", "_trusted/table")
WIDTH = 900
BOX = 130
HEIGHT = 34
STEP = 74
STYLE = {
    "private": ("#f6d5d0", "#b03a2e"),
    "trusted": ("#fdf0cf", "#b9770e"),
    "public": ("#e2ecf7", "#2e6da4"),
}

# The words of signatures that a newcomer cannot know: the word, its meaning, and the file and name
# that define it.
WORDS = (
    (
        "along",
        "the queries or the strategy on the cells of one attribute, the others fixed",
        "_workload/_workload.py",
        "Workload.along",
    ),
    (
        "attribute set",
        "attributes by position, in the algebra of marginals; `tau` in formulas",
        "_strategies/_residual_algebra.py",
        "AttributeSet",
    ),
    (
        "block",
        "one table of measured queries: a product of factors with one noise scale",
        "_trusted/measurements/_measurements.py",
        "Block",
    ),
    (
        "candidate",
        "one strategy with one kind of noise, tried on a workload: a plan, or why there is none",
        "_mechanisms/_candidates.py",
        "Candidate",
    ),
    (
        "catalogue",
        "the texts of one language, and how it writes numbers",
        "_texts/_catalogue.py",
        "Catalogue",
    ),
    (
        "closure",
        "all subsets of the attribute sets of some marginals",
        "_strategies/_residual_algebra.py",
        "DownwardClosure",
    ),
    (
        "coarse",
        "queries on runs of neighbouring cells (buckets) instead of cells",
        "_trusted/linop/_structured.py",
        "Coarse",
    ),
    (
        "contract",
        "what a release may do with private rows: domain, steps and budget",
        "_trusted/kernel/_series.py",
        "ReleaseContract",
    ),
    (
        "contrasts",
        "rows that determine the differences between cells, but not their total",
        "_trusted/linop/_structured.py",
        "Contrasts",
    ),
    (
        "covering design",
        "a few large tables that together contain every requested one",
        "_strategies/_covering.py",
        "covering_design",
    ),
    (
        "effort",
        "the share of the steps of a full search that is taken",
        "_families/_p_identity.py",
        "p_identity",
    ),
    (
        "ends",
        "both ends of a measure, `v - low` and `high - v`, measured for the cost of one",
        "_trusted/measurements/_measurements.py",
        "Block",
    ),
    (
        "equations",
        "what a block says about a quantity: its queries and the variance of each",
        "_error/_equations.py",
        "Equations",
    ),
    (
        "expected error",
        "the errors of all tables under a plan, computed without data, with a lower bound",
        "_plan/_plan.py",
        "ExpectedError",
    ),
    (
        "factor",
        "integer queries along some attributes, with row weights; a part of a block",
        "_trusted/measurements/_measurements.py",
        "Factor",
    ),
    (
        "family",
        "a way to fit a strategy along one attribute to a Gram matrix",
        "_families/_gram.py",
        "FitFamily",
    ),
    (
        "finding",
        "the data-dependent choices of a mechanism, and the estimator that they imply",
        "_estimation/_least_squares.py",
        "Finding",
    ),
    (
        "generators",
        "vectors a and b of Gram matrices with `M_ij = sum a_i b_j` for i <= j",
        "_families/_gram.py",
        "Generators",
    ),
    (
        "gram",
        "the matrix `W^T W` of the queries along one attribute, stored by its structure",
        "_families/_gram.py",
        "Gram",
    ),
    (
        "halving",
        "the tree of aligned blocks, each with the difference of its halves",
        "_estimation/_shrinkage.py",
        "HalvingTree",
    ),
    (
        "hidden cell",
        "the cell of rows without a value, which is measured and not published",
        "_workload/_missing.py",
        "with_hidden_cells",
    ),
    (
        "importance",
        "the factor of a table's squared error: the weight squared, in contributions of one row",
        "_workload/_product.py",
        "Product.importance",
    ),
    (
        "joint cells",
        "the cells of all attributes that some blocks measure, in one table",
        "_error/_joint.py",
        "JointBlocks",
    ),
    (
        "mechanism",
        "a way from a workload to answers, with steps that may depend on noisy results",
        "_mechanisms/_protocol.py",
        "Mechanism",
    ),
    (
        "norm",
        "the p of the sensitivity: 1 for Laplace noise, 2 for Gaussian noise",
        "_trusted/accounting/_cost.py",
        "Noise.norm",
    ),
    (
        "operator",
        "an integer matrix of queries over cells, stored implicitly",
        "_trusted/linop/_operators.py",
        "Operator",
    ),
    (
        "outcome",
        "a plan that was carried out: its observation and finding",
        "_estimation/_least_squares.py",
        "Outcome",
    ),
    (
        "planner",
        "a function from a workload and a budget to a strategy, with estimates of its time",
        "_strategies/_planning_problem.py",
        "Planner",
    ),
    (
        "problem",
        "the public input of a planner: workload, budget, kind of noise and seconds",
        "_strategies/_planning_problem.py",
        "PlanningProblem",
    ),
    (
        "pull",
        "the relative cost of the total, which decides the best tilt",
        "_families/_contrasts.py",
        "best_tilt",
    ),
    (
        "quantity",
        "counts of rows, or the sums of one measure (`None` stands for counts)",
        "_error/_structure.py",
        "quantity_structure",
    ),
    (
        "reading",
        "how texts become values: texts for null, trimming, case",
        "_trusted/domain/_reading.py",
        "Reading",
    ),
    ("receipt", "the ledger's facts about a payment", "_trusted/kernel/_ledger_run.py", "Receipt"),
    (
        "request",
        "the public parameters of a count that an engine makes",
        "_trusted/reading/_column.py",
        "CountRequest",
    ),
    (
        "run",
        "neighbouring cells that no query separates, known by their first cell",
        "_families/_queries.py",
        "first_cells",
    ),
    (
        "series",
        (
            "the paid steps of one release, in code of the kernel; "
            "in a spec, periods that are paid for once"
        ),
        "_trusted/kernel/_series.py",
        "Series",
    ),
    (
        "source",
        "opened data: public facts, and a way to the private rows",
        "_trusted/reading/_column.py",
        "Source",
    ),
    (
        "strategy",
        "the measured queries with relative weights; exact noise scales follow",
        "_strategies/_planning_problem.py",
        "Strategy",
    ),
    (
        "structure",
        "the covariance of least squares from some blocks, in the form that suits them",
        "_error/_equations.py",
        "Structure",
    ),
    (
        "tilt",
        "the direction of sum 1 that contrasts leave out",
        "_families/_contrasts.py",
        "best_tilt",
    ),
)


def layers() -> list[list[str]]:
    """Return the packages of each layer of the import contracts, highest layer first."""
    rows = []
    for row in layers_of_contract("data flows one way"):
        if row == ["_trusted"]:
            inside = layers_of_contract("the layers of the trusted code")
            rows += [[f"_trusted/{name}" for name in inner_row] for inner_row in inside]
        else:
            rows.append(row)
    return rows


def layers_of_contract(name: str) -> list[list[str]]:
    """Return the packages of each layer of one contract in pyproject.toml, highest first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = {contract["name"]: contract for contract in tools["importlinter"]["contracts"]}
    return [layer.split(" | ") for layer in contracts[name]["layers"]]


def module_of(package: str) -> str:
    """Return the module name of a package from the name of its folder."""
    return f"leastnoise.{package.replace('/', '.')}"


def imports() -> set[tuple[str, str]]:
    """Return the pairs of importing and imported package, without indirect imports.

    A pair is left out if a chain of other imports connects its packages.
    """
    graph = grimp.build_graph("leastnoise", cache_dir=None, exclude_type_checking_imports=True)
    packages = [name for layer in layers() for name in layer]
    for name in packages:
        if graph.find_descendants(module_of(name)):
            graph.squash_module(module_of(name))
    direct = {
        (importer, imported)
        for importer, imported in product(packages, repeat=2)
        if importer != imported
        and graph.direct_import_exists(importer=module_of(importer), imported=module_of(imported))
    }
    reached = set(direct)
    while more := {(a, d) for a, b in reached for c, d in direct if b == c} - reached:
        reached |= more
    return {
        (a, b)
        for a, b in direct
        if not any((a, c) in reached and (c, b) in reached for c in packages)
    }


def kind(package: str) -> str:
    """Return "private" for packages that see rows, "trusted" for other trusted code."""
    if package in PRIVATE:
        return "private"
    if package in TRUSTED:
        return "trusted"
    return "public"


def picture() -> str:
    """Draw the packages and their imports as SVG."""
    rows = layers()
    positions = {
        # Single boxes of a layer are moved to the left and right in turn, so that arrows pass them.
        name: (
            WIDTH * (2 * column + 1) / (2 * len(row)) + (len(row) == 1) * (90 if line % 2 else -90),
            40 + STEP * line,
        )
        for line, row in enumerate(rows)
        for column, name in enumerate(row)
    }
    height = 40 + STEP * len(rows) + 20
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="sans-serif" font-size="14" role="img">'
        ),
        "<title>The packages of leastnoise: each imports only what is below it</title>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">',
        '<path d="M0 0 8 4 0 8" fill="#888"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for importer, imported in sorted(imports()):
        x, y = positions[importer]
        u, v = positions[imported]
        bend = (v - y) / 2
        parts.append(
            f'<path d="M{x:g} {y + HEIGHT:g} C{x:g} {y + HEIGHT + bend / 2:g} {u:g} '
            f'{v - bend / 2:g} {u:g} {v - 2:g}" '
            'fill="none" stroke="#888" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in positions.items():
        fill, edge = STYLE[kind(name)]
        parts += [
            (
                f'<rect x="{x - BOX / 2:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="5" '
                f'fill="{fill}" stroke="{edge}"/>'
            ),
            (
                f'<text x="{x:g}" y="{y + 22:g}" '
                f'text-anchor="middle">{escape(name.split("/")[-1])}</text>'
            ),
        ]
    for index, (name, description) in enumerate(
        (("private", "sees rows or counts"), ("trusted", "trusted: proved"), ("public", "public"))
    ):
        fill, edge = STYLE[name]
        parts += [
            (
                f'<rect x="{20 + 170 * index}" y="10" width="14" height="14" fill="{fill}" '
                f'stroke="{edge}"/>'
            ),
            f'<text x="{40 + 170 * index}" y="22" font-size="12">{description}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def folders() -> Iterator[tuple[str, str]]:
    """Yield each folder or file of the package and the first paragraph of its docstring.

    The highest layer comes first.
    """
    for name in (name for layer in layers() for name in layer):
        for path in sorted((SOURCE / name).rglob("__init__.py")) or [SOURCE / f"{name}.py"]:
            if path.parent.name == "helpers":
                continue
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            source = path.parent if path.name == "__init__.py" else path
            yield source.relative_to(SOURCE).as_posix(), text.split("\n\n")[0].replace("\n", " ")


def table() -> str:
    """Return the table of folders in Markdown."""
    return "\n".join(
        [
            "| folder | contents |",
            "|---|---|",
            *(f"| `{name}` | {text} |" for name, text in folders()),
        ]
    )


def words() -> str:
    """Return the table of words in Markdown, in alphabetical order."""
    rows = [
        f"| {word} | {meaning} | `{path}`: `{name}` |"
        for word, meaning, path, name in sorted(WORDS)
    ]
    return "\n".join(["| word | meaning | defined in |", "|---|---|---|", *rows])


def missing_words() -> list[str]:
    """Return the words whose file no longer defines the name."""
    return [word for word, _, path, name in WORDS if name not in defined_names(SOURCE / path)]


def defined_names(path: Path) -> set[str]:
    """Return the classes, functions, methods, fields and constants that a file defines."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names |= names_of(node)
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                names |= {f"{node.name}.{name}" for name in names_of(part)}
    return names


def names_of(node: ast.stmt) -> set[str]:
    """Return the names that one statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    targets: list[ast.expr] = []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    return {target.id for target in targets if isinstance(target, ast.Name)}


def page(text: str) -> str:
    """Replace the tables in the text of the page by current ones."""
    for mark, content in (("folders", table()), ("words", words())):
        start = text.index(f"<!-- {mark} -->\n") + len(f"<!-- {mark} -->\n")
        end = text.index("\n<!-- end -->", start)
        text = text[:start] + content + text[end:]
    return text


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
