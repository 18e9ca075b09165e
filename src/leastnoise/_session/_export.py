"""A published release in another form; it costs nothing."""

import os
from pathlib import Path

from leastnoise._check import InputError, one_of
from leastnoise._exports import EXPORTS, Published
from leastnoise._plan import read_json
from leastnoise._session._reading import read_release


def export(directory: str | os.PathLike[str], form: str) -> str:
    """A release that was written, as a text for other people or programs.

    Args:
        directory: the release.
        form: ``review`` (Markdown after NIST SP 800-226; what only people can answer is marked), ``registry`` (YAML for the registry of
            deployments of differential privacy), ``mbi`` (JSON with the measurements as mbi takes them) or ``notebook``
            (for Jupyter; Quarto renders it too).

    Raises:
        InputError: another form, no release, or one without what the form needs.

    Guarantees: post-processing of what was published; it reads no data and costs nothing. The privacy loss that it states is that of all
        that was published, a guard's share included.

    >>> ln.export("/nowhere-at-all/release", "revue")
    Traceback (most recent call last):
    leastnoise._check._errors.InputError: the form of an export must be one of 'review', 'registry', 'mbi', 'notebook'; ...
    """
    chosen = EXPORTS[one_of("the form of an export", form, tuple(EXPORTS))]
    release = read_release(directory)
    path = Path(directory).expanduser()
    manifest = read_json((path / "manifest.json").read_text(encoding="utf-8"))  # `read_release` has read it
    try:
        return chosen(Published(release, manifest, str(path)))
    except KeyError:
        raise InputError(f"The release in {str(path)!r} is damaged: its manifest cannot be understood. Use an intact copy.") from None
