"""The edition of a publication."""

from example_releases import write
from leastnoise._release import Options, build_release


def test_edition_is_in_the_citation(observation, tmp_path):
    target = write(build_release(observation, Options(edition="second edition")), tmp_path / "out")
    assert "second edition" in (target / "report.html").read_text(encoding="utf-8")
