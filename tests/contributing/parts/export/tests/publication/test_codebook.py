"""The codebook of a release."""

import csv
import io

import leastnoise as ln


def test_codebook_lists_every_code(stored):
    release = ln.read_release(stored)
    domain = release.plan.domain
    rows = list(csv.DictReader(io.StringIO(ln.export(stored, "codebook"))))
    assert rows == [
        {"attribute": name, "code": str(label)}
        for name in domain.names
        for label in domain.kind(name).labels
    ]
