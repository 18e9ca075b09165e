"""The page of a series: its periods with the releases that are published, and how exact each period's answers are, or will be."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from leastnoise._release._names import table_words
from leastnoise._release._options import Options
from leastnoise._release._texts import TEMPLATES, filled, texts
from leastnoise._workload import Product


def write_series_page(folder: Path, options: Options, tables: Sequence[Product], errors: Mapping[str, Sequence[float | None]]) -> None:
    """Write ``index.html`` into the directory of a series: promised errors by period and table, None where nothing ends."""
    said, published = texts(options.language), [label for label in errors if (folder / label / "report.html").exists()]
    page = filled(
        "series.html",
        t=said,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        title=options.title or said.say("series_title"),
        published=published,
        periods=len(errors),
        heads=[said.say("col_period"), *(table_words(product, said) for product in tables)],
        rows=[(label, ["" if error is None else said.error(error) for error in row]) for label, row in errors.items()],
    )
    draft = folder / "index.html.new"
    draft.write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    draft.replace(folder / "index.html")
