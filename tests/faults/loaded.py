"""Imports of the program without any that start a thread, loaded once for all forks."""

import pkgutil
from importlib import import_module

import leastnoise
from leastnoise._texts import TEMPLATES, load_templates

# What a release loads when it comes to it.
LATER = """
babel.dates babel.lists babel.messages.pofile babel.numbers
duckdb jinja2 platformdirs.unix pyarrow.compute pyarrow.csv resource rich.console rich.table
scipy.optimize scipy.sparse.csgraph scipy.sparse.linalg scipy.special statistics"""

for module in pkgutil.walk_packages(leastnoise.__path__, "leastnoise."):
    if "__main__" not in module.name and "_studio" not in module.name:
        import_module(module.name)
for name in LATER.split():
    import_module(name)
load_templates(TEMPLATES).get_template("report.html")  # is compiled once, and not in every fork
