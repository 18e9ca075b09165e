"""Draw the pictures of one chart's tests as SVG files: ``make charts NAME=bars``."""

import argparse
from pathlib import Path

from charts.axes import picture
from charts.kit import AXES
from leastnoise._charts import draw_chart, render_svg

FOLDER = Path("build/charts")


def draw(name, folder):
    """Write a file for each row of a chart; return the paths of the files."""
    pictures = [picture(axes) for axes in AXES[name]]
    texts = [(f"c{number}", row.name, row.name) for number, row in enumerate(pictures)]
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, svg in enumerate(render_svg([draw_chart(row) for row in pictures], texts), 1):
        path = folder / f"{name}-{number}.svg"
        path.write_text(svg, encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=AXES)
    for path in draw(parser.parse_args().name, FOLDER):
        print(path)
