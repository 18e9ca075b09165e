"""How large the package is, with ceilings that only go down: whoever adds says what goes.

python -m contracts.size        lines, files, functions and lines of code, and the ten largest folders
"""

import ast
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from contracts.sources import code_lines

FOLDER = Path(__file__).parents[1] / "src" / "leastnoise"
CEILINGS = {"lines": 45_819, "files": 198, "functions": 2_897, "code": 27_084}


def counted(folder: Path = FOLDER) -> dict[str, Counter[str]]:
    """Lines, files, functions and lines of code of every folder of the package, by its path."""
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        imports = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
        rooms.setdefault(path.parent.relative_to(folder).as_posix(), Counter()).update(
            lines=len(text.splitlines()),
            files=1,
            functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
            code=len(code_lines(text)) - imports,
        )
    return rooms


def above(total: Mapping[str, int], ceilings: Mapping[str, int]) -> list[str]:
    """What is above its ceiling, as sentences."""
    return [f"{total[name]} {name}, at most {most} are allowed" for name, most in ceilings.items() if total[name] > most]


if __name__ == "__main__":
    rooms = counted()
    total: Counter[str] = sum(rooms.values(), Counter())
    for name, room in sorted(rooms.items(), key=lambda item: -item[1]["lines"])[:10]:
        print(f"{name:24}" + "".join(f"{room[kind]:8} {kind}" for kind in CEILINGS))
    print(f"{'in all':24}" + "".join(f"{total[kind]:8} {kind}" for kind in CEILINGS))
    raise SystemExit("\n".join(above(total, CEILINGS)))
