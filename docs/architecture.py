"""The picture and the table of docs/architecture.md, made from the code: packages in the layers of pyproject.toml, and who imports whom.

python -m docs.architecture     writes docs/images/architecture.svg and the table of docs/architecture.md   (`make pictures`)
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from xml.sax.saxutils import escape

import grimp
from contracts.trusted import TRUSTED

ROOT = Path(__file__).parents[1]
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


def layers() -> list[list[str]]:
    """The packages of every layer, highest layer first, as the import contract has them."""
    rows = []
    for row in layers_of_contract("data flows one way"):
        if row == ["_trusted"]:
            inside = layers_of_contract("the layers of the trusted code")
            rows += [[f"_trusted/{name}" for name in inner_row] for inner_row in inside]
        else:
            rows.append(row)
    return rows


def layers_of_contract(name: str) -> list[list[str]]:
    """The rows of one contract of layers in pyproject.toml, highest first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = {contract["name"]: contract for contract in tools["importlinter"]["contracts"]}
    return [layer.split(" | ") for layer in contracts[name]["layers"]]


def module_of(package: str) -> str:
    """The module of a package that is named by its folder."""
    return f"leastnoise.{package.replace('/', '.')}"


def imports() -> set[tuple[str, str]]:
    """Pairs (package, package that it imports) that no chain of other imports explains."""
    graph = grimp.build_graph("leastnoise", cache_dir=None, exclude_type_checking_imports=True)
    packages = [name for layer in layers() for name in layer]
    for name in packages:
        if graph.find_descendants(module_of(name)):
            graph.squash_module(module_of(name))
    direct = {
        (one, other)
        for one, other in product(packages, repeat=2)
        if one != other
        and graph.direct_import_exists(importer=module_of(one), imported=module_of(other))
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
    """Whether a package holds private rows, is trusted with what it computes, or neither."""
    if package in PRIVATE:
        return "private"
    if package in TRUSTED:
        return "trusted"
    return "public"


def picture() -> str:
    """The picture as SVG."""
    rows = layers()
    place = {
        # boxes that are alone in their layer stand to the left and to the right in turn, so that
        # arrows go past them
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
    for one, other in sorted(imports()):
        (x, y), (u, v) = place[one], place[other]
        bend = (v - y) / 2
        parts.append(
            f'<path d="M{x:g} {y + HEIGHT:g} C{x:g} {y + HEIGHT + bend / 2:g} {u:g} '
            f'{v - bend / 2:g} {u:g} {v - 2:g}" '
            'fill="none" stroke="#888" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in place.items():
        fill, edge = STYLE[kind(name)]
        parts += [
            (
                f'<rect x="{x - BOX / 2:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="5" '
                f'fill="{fill}" stroke="{edge}"/>'
            ),
            f'<text x="{x:g}" y="{y + 22:g}" text-anchor="middle">{escape(name.split("/")[-1])}</text>',
        ]
    for place_of, (what, words) in enumerate(
        (("private", "sees rows or counts"), ("trusted", "trusted: proved"), ("public", "public"))
    ):
        fill, edge = STYLE[what]
        parts += [
            (
                f'<rect x="{20 + 170 * place_of}" y="10" width="14" height="14" fill="{fill}" '
                f'stroke="{edge}"/>'
            ),
            f'<text x="{40 + 170 * place_of}" y="22" font-size="12">{words}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def folders() -> Iterator[tuple[str, str]]:
    """Every folder of the package, or its one file, with the first sentence of its docstring; highest layer first."""
    for name in (name for layer in layers() for name in layer):
        for path in sorted((SOURCE / name).rglob("__init__.py")) or [SOURCE / f"{name}.py"]:
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if path.name == "__init__.py":
                room = path.parent
            else:
                room = path
            yield room.relative_to(SOURCE).as_posix(), text.split("\n\n")[0].replace("\n", " ")


def table() -> str:
    """The table of folders in Markdown."""
    return "\n".join(
        [
            "| folder | contents |",
            "|---|---|",
            *(f"| `{name}` | {text} |" for name, text in folders()),
        ]
    )


def page(text: str) -> str:
    """The text of the page with the table of today."""
    return re.sub(
        r"(?<=<!-- folders -->\n).*?(?=\n<!-- end -->)", lambda _: table(), text, flags=re.DOTALL
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
