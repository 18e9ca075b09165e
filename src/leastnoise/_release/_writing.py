"""The files of a release."""

import csv
import json
from pathlib import Path
from typing import Any

from leastnoise._linop import whole_bytes_text
from leastnoise._release._directory import Draft, list_files
from leastnoise._release._files import write_answers, write_covariances
from leastnoise._release._manifest import MOST_LISTED, manifest, measured_tables
from leastnoise._release._release import Release
from leastnoise._release._report import report


def fill_draft(release: Release, place: Draft) -> None:
    """Write the files of a release into a draft, which is then published."""
    _write_measurements(release, place.path / "measurements")
    entries = write_answers(release, place.path)
    write_covariances(release, place.path)
    page = report(release, entries)
    (place.path / "report.html").write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    value = manifest(release, entries, list_files(place.path))
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (place.path / "manifest.json").write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _write_measurements(release: Release, directory: Path) -> None:
    """The plan, and the observation, table by table."""
    directory.mkdir()
    observation = release.observation
    (directory / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
    head: dict[str, Any] = {"plan_digest": release.plan_digest, "receipt": observation.receipt, "private": observation.private}
    if release.plan.measurements is None:  # what was decided on the way
        head |= {"measurements": observation.measurements.to_value(), "outcome": release.finding.facts()}
    with (directory / "observation.json").open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "values": [')
        for place, values in enumerate(observation.values):
            file.write((", " if place else "") + whole_bytes_text(values))
        file.write("]}")
    if len(observation.measurements.blocks) > MOST_LISTED:
        with (directory / "tables.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
            tables = measured_tables(observation.measurements)
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(tables[0])
            rows.writerows([" x ".join(value) if isinstance(value, list) else value for value in table.values()] for table in tables)
