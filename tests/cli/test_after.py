"""Specs that name earlier releases, from the command line."""

import hashlib
import json

import pytest

import leastnoise as ln
from cli.conftest import assert_contains, edit

AFTER = 'after = ["release-2025"]\n'


@pytest.fixture
def folder_of_release(folder, run):
    """Return a folder with a release, and a spec that names it."""
    ln.Ledger.create(folder / "people.ledger", "people", ln.Privacy(ln.PureDP(3)))
    run.succeeds("release", "people.toml", "--out", "release-2025")
    edit(folder, ("[plan]\n", f"[plan]\n{AFTER}"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "heading"), [("en", "Earlier releases"), ("de", "Frühere Veröffentlichungen")]
)
def test_spec_counts_earlier_releases(folder_of_release, run, language, heading):
    spec = folder_of_release / "people.toml"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(f'{text}[output]\nlanguage = "{language}"\n', encoding="utf-8")
    promised = run.json("plan", "people.toml")
    observation = (
        folder_of_release / "release-2025" / "measurements" / "observation.json"
    ).read_bytes()
    digest = hashlib.sha256(observation).hexdigest()
    assert [(entry["name"], entry["digest"]) for entry in promised["after"]] == [
        ("release-2025", digest)
    ]
    assert_contains(run.succeeds("plan", "people.toml").out, "release-2025", "cost nothing")
    if language == "en":
        assert "the errors of one release" in run.succeeds("compare", "people.toml").out
    for _ in range(2):  # the second finds the release there, and pays nothing
        run.succeeds("release", "people.toml", "--out", "new")
    assert len(ln.Ledger.open(folder_of_release / "people.ledger").entries()) == 2
    facts = json.loads((folder_of_release / "new" / "manifest.json").read_text(encoding="utf-8"))
    assert facts["plan"]["after"][0]["digest"] == digest
    assert facts["expected_error"]["error_bars_are_as_promised"]
    report = (folder_of_release / "new" / "report.html").read_text(encoding="utf-8")
    assert_contains(report, heading, "release-2025")
    edit(folder_of_release, (AFTER, ""))
    run.is_refused("[plan] after differ", "release", "people.toml", "--out", "new")


@pytest.mark.parametrize(
    ("earlier", "reason"),
    [
        ('"release-2025"', "must be a list of folders of releases"),
        ('["release-2024"]', "There is no release in"),
    ],
)
def test_unusable_after_is_refused(folder_of_release, run, earlier, reason):
    edit(folder_of_release, ('["release-2025"]', earlier))
    run.is_refused(reason, "plan", "people.toml")
