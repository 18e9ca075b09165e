"""Metadata of a release, checked by other validators where they are installed."""

import json
import shutil
import warnings

import pandas as pd
import pytest

import leastnoise as ln

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # within rdflib and csvw
ADVICE = "install csvw and rdflib to validate exports with them"
DCT = "http://purl.org/dc/terms/"
DCAT = "http://www.w3.org/ns/dcat#"
MANDATORY = {
    f"{DCAT}Dataset": [f"{DCT}title", f"{DCT}description"],
    f"{DCAT}Distribution": [f"{DCAT}accessURL"],
    "http://xmlns.com/foaf/0.1/Agent": ["http://xmlns.com/foaf/0.1/name"],
    "http://www.w3.org/2004/02/skos/core#Concept": [
        "http://www.w3.org/2004/02/skos/core#prefLabel"
    ],
}
"""The mandatory properties of DCAT-AP 3.0.1, by class."""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A seeded release with periods, missing values, bins and a statistic, and its metadata."""
    out = tmp_path_factory.mktemp("published") / "release"
    domain = ln.Domain(
        {
            "sex": ln.Categories(["F", "M"], null="cell"),
            "month": ln.Dates("2024-01-01", "2024-06-30", "month"),
            "net pay": ln.Bins(0, 100, 4, outside="clip"),
        }
    )
    workload = ln.marginals(domain, ways=2) + ln.quantile_queries(
        domain, "net pay", ["1/2"], by=["sex"]
    )
    rows = pd.DataFrame(
        {
            "sex": ["F", "M", None] * 40,
            "month": ["2024-02-03", "2024-05-09"] * 60,
            "net pay": [20, 70] * 60,
        }
    )
    options = ln.Options(
        title={"en": "Visits", "de": "Besuche"}, agency="Office", contact="info@example.org"
    )
    ln.release(ln.plan(workload, ln.PureDP(9), seconds=1), rows, seed=1, out=out, options=options)
    for form, name in (("csvw", "csv-metadata.json"), ("dcat", "dcat.jsonld")):
        (out / name).write_text(ln.export(out, form), encoding="utf-8")
    return out


def test_csvw_validates_with_the_csvw_package(published, tmp_path):
    csvw = pytest.importorskip("csvw", reason=ADVICE)
    metadata = published / "csv-metadata.json"
    assert csvw.CSVW(str(metadata), validate=True).is_valid
    tables = csvw.TableGroup.from_file(metadata).tables
    assert all(table.check_primary_key() for table in tables)
    assert all(list(table.iterdicts(strict=True)) for table in tables)
    broken = tmp_path / "broken"
    shutil.copytree(published, broken)
    value = json.loads(metadata.read_text(encoding="utf-8"))
    value["tables"][0]["tableSchema"]["columns"][1]["datatype"] = "integer"
    (broken / metadata.name).write_text(json.dumps(value), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # which the validator collects
        assert not csvw.CSVW(str(broken / metadata.name), validate=True).is_valid


def test_dcat_entry_has_the_mandatory_properties(published):
    rdflib = pytest.importorskip("rdflib", reason=ADVICE)
    graph = rdflib.Graph().parse(published / "dcat.jsonld", format="json-ld")
    for kind, properties in MANDATORY.items():
        nodes = list(graph.subjects(rdflib.RDF.type, rdflib.URIRef(kind)))
        assert nodes, kind
        for node in nodes:
            values = [graph.value(node, rdflib.URIRef(name)) for name in properties]
            assert None not in values, (kind, properties)
    addresses = set(graph.objects(None, rdflib.URIRef(f"{DCT}license")))
    assert {str(address) for address in addresses} == {"https://example.org/FILL-IN/license"}
    email = rdflib.URIRef("http://www.w3.org/2006/vcard/ns#hasEmail")
    assert [str(value) for value in graph.objects(None, email)] == ["mailto:info@example.org"]
