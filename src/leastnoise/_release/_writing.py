"""A release on disk: written whole or not at all, and read back."""

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leastnoise._check import one_of, refuse
from leastnoise._linop import pack
from leastnoise._release._directory import Draft, check_target, draft, list_files
from leastnoise._release._files import FORMATS, Progress, default_formats, write_answers, write_covariances
from leastnoise._release._manifest import MOST_LISTED, manifest, measured_tables
from leastnoise._release._release import Release
from leastnoise._release._report import report


def write(
    release: Release,
    directory: str | os.PathLike[str],
    formats: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
) -> Path:
    """Write a release to a new directory.

    Args:
        release: from `build`.
        directory: where; it must not exist. Call `check_target` on it before anything is spent.
        formats: csv, parquet or both for the answers; None for both, or Parquet alone over ten million answers.
        progress: called with the number of tables written and of all.

    Returns:
        The absolute path of the directory. It holds ``report.html``, ``manifest.json``, the index ``tables.csv``, ``answers/`` (one file a
        table and format, or parts of many tables where there are over 200), ``measurements/`` (the noisy integers and their plan), and
        ``covariances/`` for the tables that `build` was asked for.

    Raises:
        InputError: the directory exists or cannot be made, or an unknown format.

    Guarantees: the directory appears complete and on the disk, or not at all; see `draft`.

    >>> domain = Domain(sex=["F", "M"])
    >>> total = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(Block((), 1),))
    >>> plan = promised(marginals(domain, ways=0), total)
    >>> release = build(Outcome(plan, Observation(total, (np.array([5]),), receipt="", private=False)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in write(release, Path(folder, "out"), ("csv",)).iterdir())
    ['answers', 'manifest.json', 'measurements', 'report.html', 'tables.csv']
    """
    with draft(check_target(directory)) as place:
        fill_draft(release, place, formats, progress=progress)
        place.publish()
    return place.target


def fill_draft(release: Release, place: Draft, formats: Sequence[str] | None = None, *, progress: Progress | None = None) -> None:
    """Write the files of a release into a draft, which is then published.

    Args:
        release: from `build`.
        place: from `draft`; empty.
        formats: as in `write`.
        progress: as in `write`.

    Raises:
        InputError: an unknown format.

    >>> fill_draft(None, None, ("xlsx",))
    Traceback (most recent call last):
    leastnoise._check._errors.InputError: formats must be one of 'csv', 'parquet'; got 'xlsx'.
    """
    kinds = default_formats(release) if formats is None else _formats(formats)
    _write_measurements(release, place.path / "measurements")
    entries = write_answers(release, place.path, kinds, progress)
    write_covariances(release, place.path, kinds)
    page = report(release, entries)
    (place.path / "report.html").write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    value = manifest(release, entries, kinds, list_files(place.path))
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (place.path / "manifest.json").write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _formats(formats: Sequence[str]) -> tuple[str, ...]:
    words = (formats,) if isinstance(formats, str) else tuple(formats)
    if not words:
        raise refuse("formats", list(words), "at least one of 'csv' and 'parquet'")
    return tuple(dict.fromkeys(one_of("formats", word, FORMATS) for word in words))


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
            file.write((", " if place else "") + json.dumps(pack(values, 1)))
        file.write("]}")
    if len(observation.measurements.blocks) > MOST_LISTED:
        with (directory / "tables.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
            tables = measured_tables(observation.measurements)
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(tables[0])
            rows.writerows([" x ".join(value) if isinstance(value, list) else value for value in table.values()] for table in tables)
