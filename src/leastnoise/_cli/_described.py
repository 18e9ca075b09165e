"""The draft of a spec from another tool's description of the data."""

from pathlib import Path
from typing import TYPE_CHECKING

from leastnoise._cli._output import shown
from leastnoise._cli._toml import comment, key, left_out, relative, text, value

if TYPE_CHECKING:
    from leastnoise._descriptions import Description

_HEAD = """\
# A spec for leastnoise, drafted from a description of {tool} ({file}): no row was read.
# What the description does not say is marked "FILL IN": replace it by a public value. Remove what you do not want to publish. Then:
#
#     leastnoise plan {spec}                  expected error; reads no data and spends nothing
#     leastnoise release {spec} --out out     pays, and writes answers, manifest and report
"""
_PRIVACY = """
[privacy]
epsilon = "1"                 # the budget of this release: smaller protects more; or rho = "1/2", or epsilon and delta
neighbours = "add_remove"     # hides whether a person is in the table; "replace" hides what the person's rows say
"""
_TAIL = """
[[workload]]
marginals = { ways = 1 }      # one table an attribute; ways = 2: one a pair; upto = 2: all of up to two attributes

[plan]
strategy = "auto"             # the least expected error; `leastnoise compare` lists the others
guard = "1/100"               # this share of the budget counts rows first, and stops a release of which few rows are used

[output]
level = 0.95                  # of the intervals
"""


def described(found: "Description", described_in: Path, spec: Path, data: Path | None) -> str:
    """Write the text of a spec."""
    head = _HEAD.replace("{tool}", found.tool).replace("{file}", comment(described_in.name)).replace("{spec}", shown(spec))
    parts = [head, *(f"#\n# {comment(note)}\n" for note in found.notes)]
    parts.append('\n# [source]\n# path = "people.csv"\n' if data is None else f"\n[source]\npath = {text(relative(data, spec))}\n")
    parts.append(_PRIVACY)
    if found.unit is None:
        parts.append('unit = "row"                  # every row is another person; else unit = { column = "person_id", max_rows = 5 }\n')
    else:
        parts.append(f"unit = {value({'column': found.unit, 'max_rows': found.max_rows})}\n")
    for name, table in found.attributes.items():
        parts.append(f"\n[domain.{key(name)}]\n" + "".join(f"{word} = {value(one)}\n" for word, one in table.items()))
    parts += ["\n" + left_out(name, comment(why)) for name, why in found.left_out.items()]
    for name, table in found.measures.items():
        lines = "".join(f"# {word} = {value(one)}\n" for word, one in table.items())
        parts.append(f"\n# Its sum:\n# [measures.{key(name)}]\n{lines}# [[workload]]\n# queries = {{}}\n# sum = {text(name)}\n")
    return "".join([*parts, _TAIL])
