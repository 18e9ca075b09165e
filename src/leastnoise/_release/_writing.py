"""A release on disk: written whole or not at all, and read back."""

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leastnoise._check import InputError, one_of, read_json, refuse
from leastnoise._linop import pack
from leastnoise._observation import Observation
from leastnoise._plan import Plan
from leastnoise._release._directory import Draft, check_target, draft, list_files, sha256
from leastnoise._release._files import FORMATS, Progress, default_formats, write_answers, write_covariances
from leastnoise._release._manifest import FORMAT, MOST_LISTED, manifest, measured_tables
from leastnoise._release._release import Release, build
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
    >>> plan = Plan(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(Block((), 1),), strategy="total")
    >>> plan = promised(marginals(domain, ways=0), plan)
    >>> release = build(Observation(plan=plan, values=(np.array([5]),), receipt="", private=False))
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
    """The plan and the observation; the latter table by table, in the same bytes as ``Observation.to_json``."""
    directory.mkdir()
    plan, observation = release.plan, release.observation
    (directory / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    head = {"plan_digest": release.plan_digest, "receipt": observation.receipt, "private": observation.private}
    with (directory / "observation.json").open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "values": [')
        for place, values in enumerate(observation.values):
            file.write((", " if place else "") + json.dumps(pack(values, 1)))
        file.write("]}")
    if len(plan.blocks) > MOST_LISTED:
        with (directory / "tables.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
            tables = measured_tables(plan)
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(tables[0])
            rows.writerows([" x ".join(value) if isinstance(value, list) else value for value in table.values()] for table in tables)


def read_release(directory: str | os.PathLike[str]) -> Release:
    """Read a release that `write` made; its answers are computed again from the measurements.

    Args:
        directory: the release.

    Raises:
        InputError: no release is there, one of another format, or its measurements are not those of its manifest.

    >>> ln.read_release("/nowhere-at-all/release")
    Traceback (most recent call last):
    ...
    leastnoise._check._errors.InputError: There is no release in ...
    """
    place = Path(directory).expanduser()
    advice = "Name the directory that leastnoise release wrote, the one with manifest.json."
    try:
        value: dict[str, Any] = read_json((place / "manifest.json").read_text(encoding="utf-8"))
        if value["format"] != FORMAT:
            raise refuse("the format of a release", value["format"], str(FORMAT), "Read it with the version of leastnoise that wrote it.")
        known = {entry["path"]: entry["sha256"] for entry in value["files"]}
        texts = {}
        for name in ("measurements/plan.json", "measurements/observation.json"):
            if sha256(place / name) != known[name]:
                raise InputError(
                    f"The release in {str(place)!r} was changed: {name} is not the file that its manifest describes. Use an intact copy."
                )
            texts[name] = (place / name).read_text(encoding="utf-8")
        receipt = {name: entry for name, entry in (value["receipt"] or {}).items() if name != "id"}
        level, columns = value["intervals"]["level"], list(value["post_processing"]["columns"])
        page = value.get("report", {})
        tables = [str(entry["query"]) for entry in value.get("covariances", {}).get("tables", [])]
    except OSError:
        raise InputError(f"There is no release in {str(place)!r}, or it cannot be read. {advice}") from None
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(f"The release in {str(place)!r} is damaged: its manifest cannot be understood. {advice}") from None
    plan = Plan.from_json(texts["measurements/plan.json"])
    return build(
        Observation.from_json(plan, texts["measurements/observation.json"]),
        level=level,
        non_negative="answer_non_negative" in columns,
        integer="answer_integer" in columns,
        joint="answer_nnls" in columns,
        local="answer_local" in columns,
        covariances=tables,
        receipt=receipt,
        language=page.get("language", "en"),
        contact=page.get("contact", ""),
    )
