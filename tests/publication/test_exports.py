"""Tests of every export of every stored release: complete, with the right privacy loss."""

import json
import re
import shutil
from fractions import Fraction
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import leastnoise as ln
from leastnoise._cli import load_command
from leastnoise._publication import EXPORTS, FILL_IN, REVIEW
from leastnoise._trusted.accounting import PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import dense


def test_another_form_is_refused(laplace):
    forms = ", ".join(map(repr, EXPORTS))
    with pytest.raises(InputError, match=f"must be one of {forms}; got 'pdf'"):
        ln.export(laplace, "pdf")


def test_page_of_commands_has_every_export():
    page = Path(__file__).parents[2].joinpath("docs", "commands.md").read_text("utf-8")
    missing = [name for name in EXPORTS if f"\n| `{name}` |" not in page]
    assert missing == [], f"describe {missing} in the table of exports of docs/commands.md"


def test_help_and_docstring_describe_every_export():
    command_help = load_command("export").help
    for text, pattern in ((command_help, "{} ("), (ln.export.__doc__, "``{}`` (")):
        missing = [name for name in EXPORTS if pattern.format(name) not in " ".join(text.split())]
        assert missing == [], f"describe {missing} in the command `export` and in `ln.export`"


@pytest.fixture
def change_manifest(laplace, tmp_path):
    """Return a function that copies a stored release and changes the manifest of the copy."""

    def copy(change):
        out = shutil.copytree(laplace, tmp_path / "out")
        manifest = json.loads((out / "manifest.json").read_text())
        change(manifest)
        (out / "manifest.json").write_text(json.dumps(manifest))
        return out

    return copy


def test_export_refuses_a_damaged_manifest(change_manifest):
    out = change_manifest(lambda manifest: manifest["privacy"].pop("promise"))
    with pytest.raises(InputError, match="damaged"):
        ln.export(out, "review")


# --- pages for reviewers --------------------------------------------------------------------------


def test_review_asks_all_questions_and_marks_open_ones(stored):
    text = ln.export(stored, "review")
    questions = re.findall(r"^### (\d+)\. .*$", REVIEW.read_text(), re.MULTILINE)
    assert questions == [str(number) for number in range(1, len(questions) + 1)]
    assert "**NOT PRIVATE" in text  # the stored releases have seeds
    assert "%(" not in text

    parts = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    answers = [part.split("\n", 1)[1].split("\n#")[0].strip() for part in parts]
    assert len(answers) == len(questions)
    assert all(answers)
    marked = sum(f"**{FILL_IN}**: " in answer for answer in answers)
    assert f"{marked} of {len(questions)}\nquestions have such a mark." in text


def test_whole_privacy_loss_is_stated(change_manifest):
    """The guard cost 1/99 in addition to the 1 of the plan: 100/99 in all."""
    guard = {
        "id": "",
        "guard_share": "1/100",
        "guard_charge": "1/99",
        "guard_number": 1,
        "guard_used": 790,
        "guard_kept": 800,
        "guard_noise_std": 40.0,
    }

    def add_guard(manifest):
        manifest["receipt"] = guard
        manifest["privacy"]["parameters"] = {"epsilon": "100/99"}

    out = change_manifest(add_guard)
    release = ln.read_release(out)
    assert release.plan.privacy.budget == PureDP(1)
    assert release.privacy.budget == PureDP("100/99")
    entry = yaml.safe_load(ln.export(out, "registry"))
    epsilon = entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert Fraction(epsilon) >= Fraction(100, 99)
    assert epsilon == pytest.approx(100 / 99)
    assert "A guard counted rows first and cost 1/99 more" in ln.export(out, "review")


@pytest.mark.parametrize("bound", [None, ln.PerCellBound(2, ["month", "sex"])], ids=str)
def test_unit_is_a_person_with_a_bound_of_rows(tmp_path, bound):
    domain = ln.Domain(month=[1, 2], sex=["F", "M"])
    privacy = ln.Privacy(ln.PureDP(1), unit_column="person", max_rows=5, max_per_cell=bound)
    rows = pd.DataFrame({"month": [1, 2], "sex": "F", "person": [1, 2]})
    plan = ln.plan(ln.marginals(domain, ways=2), privacy)
    ln.release(plan, rows, seed=1, out=tmp_path / "out", options=ln.Options(formats=["csv"]))
    text = ln.export(tmp_path / "out", "review")
    assert "All rows of one value of the column 'person', of which at most 5 are used" in text
    assert ("and at most 2 in one cell of month x sex." in text) == bool(bound)


FACTS_OF_THE_PLAN = {
    ("private",): [True],
    ("plan", "digest"): ["", "0" * 64],
    ("plan", "strategy"): ["identity of another plan"],
    ("privacy", "parameters"): [{}, {"epsilon": "1/10"}, {"epsilon": "1", "delta": "1e-9"}],
    ("privacy", "neighbours"): ["replace"],
    ("privacy", "unit", "column"): ["person"],
    ("privacy", "unit", "max_rows"): [0, 2],
    ("privacy", "unit", "max_per_cell"): [{"rows": 1, "attributes": ["month"]}],
    ("privacy", "cost", "within_budget"): [False],
    ("intervals", "level"): [0.5, 0.9501],
    ("receipt",): [{"id": "0" * 32}],
    ("answers", "tables", 0, "name"): ["another table"],
    ("answers", "tables", 0, "answers"): [10**6],
    ("answers", "tables", 0, "rmse"): [0.0, -1, 1e9],
}


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        pytest.param(path, fact, id=f"{'.'.join(map(str, path))} = {json.dumps(fact)[:30]}")
        for path, facts in FACTS_OF_THE_PLAN.items()
        for fact in facts
    ],
)
def test_manifest_with_other_facts_than_its_plan_is_refused(change_manifest, path, fact):
    """A manifest has no digest, so the export compares its facts with the plan."""
    *parents, key = path

    def change(manifest):
        for parent in parents:
            manifest = manifest[parent]
        manifest[key] = fact

    out = change_manifest(change)

    with pytest.raises(InputError, match="The manifest was changed"):
        ln.export(out, "review")


# --- the registry of deployments ------------------------------------------------------------------

# The registry's own template, by its keys.
REGISTRY_KEYS = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "data_product_sector publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type "
    "release_type_details data_source_type "
    "data_source_type_details access_type access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition "
    "post_processing justification utility "
    "additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}


def test_entry_of_the_registry_has_its_keys(stored):
    text = ln.export(stored, "registry")
    assert "# NOT PRIVATE" in text
    entry = yaml.safe_load(text)
    assert set(entry) == {"url_slug", "deployment"}
    deployment = entry["deployment"]
    assert set(deployment) == set(REGISTRY_KEYS)
    for part, keys in REGISTRY_KEYS.items():
        assert set(deployment[part]) <= set(keys.split())

    basic = deployment["basic"]
    manifest = json.loads((stored / "manifest.json").read_text())
    assert basic["publication_date"] == manifest["written"]
    curator = {"data_curator_name": FILL_IN, "data_curator_type": FILL_IN}
    assert basic["data_curators"] == [curator]


def test_losses_of_every_definition(stored):
    privacy = ln.read_release(stored).privacy.budget
    deployment = yaml.safe_load(ln.export(stored, "registry"))["deployment"]
    variants = {"PureDP": "Pure DP", "ApproxDP": "Approximate DP", "ZCDP": "Zero-concentrated DP"}
    assert deployment["dp_variant"]["variant_name"] == variants[type(privacy).__name__]
    for name, value in deployment["privacy_loss"]["privacy_parameters"].items():
        exact = getattr(privacy, name)
        assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 2**50))


# --- measurements for mbi -------------------------------------------------------------------------


@pytest.fixture(params=["1-laplace", "1-gaussian", "1-weights", "1-floored"])
def measured_release(request, laplace):
    """Return a stored release of counts that least squares estimates."""
    return laplace.parent / request.param


def test_mbi_gets_rows_of_equal_noise(measured_release, page):
    exported = json.loads(ln.export(measured_release, "mbi"))
    release = ln.read_release(measured_release)
    (total,) = release.answer(ln.queries(release.plan.domain))
    assert exported["total"] == {"answer": total.answer.item(), "noise_std": total.noise_std.item()}
    assert exported["domain"] == {
        name: release.plan.domain.kind(name).size for name in release.plan.domain.names
    }
    tables = page.tables(measured_release)
    counts = [table for table in tables if table["measure"] is None]
    assert len(counts) == len(exported["measurements"])
    for table, measurement in zip(counts, exported["measurements"], strict=True):
        assert measurement["clique"] == table["attributes"]
        variances = [
            page.variance(table["noise"], scale, table["grid"]) for scale in table["scales"]
        ]
        factor = measurement["stddev"] / np.sqrt(variances)
        values = (table["values"] * factor).tolist()
        assert measurement["noisy_measurement"] == pytest.approx(values, rel=0.02)

        rows = kronecker(table["matrices"]) * factor[:, None]
        if "matrices" in measurement:
            exported_rows = kronecker(measurement["matrices"])
        else:
            exported_rows = np.eye(rows.shape[1])
        assert np.allclose(exported_rows, rows, rtol=0.02)


def kronecker(matrices):
    """Return the Kronecker product of matrices."""
    return reduce(np.kron, matrices, np.ones((1, 1)))


def rows_over(sizes, matrices):
    """Return the rows over all cells; attributes without a matrix are summed out."""
    return kronecker(
        [matrices.get(attribute, np.ones((1, size))) for attribute, size in sizes.items()]
    )


def measured_rows(measurement, sizes):
    """Return the rows of an exported measurement over all cells, in units of its noise."""
    matrices = measurement.get("matrices")
    if matrices is None:
        matrices = [np.eye(sizes[attribute]) for attribute in measurement["clique"]]
    by_attribute = dict(zip(measurement["clique"], map(np.array, matrices), strict=True))
    return rows_over(sizes, by_attribute) / measurement["stddev"]


@pytest.mark.parametrize("name", ["1-laplace", "1-gaussian", "1-weights"])
def test_mbi_measurements_have_the_promised_error(laplace, name):
    """The best unbiased estimate from the export has the error that the release states."""
    exported = json.loads(ln.export(laplace.parent / name, "mbi"))
    release = ln.read_release(laplace.parent / name)
    measurements = exported["measurements"]
    used_attributes = {name for measurement in measurements for name in measurement["clique"]}
    sizes = {
        attribute: size
        for attribute, size in exported["domain"].items()
        if attribute in used_attributes
    }
    rows = np.vstack([measured_rows(measurement, sizes) for measurement in measurements])

    product = release.tables[0].product
    operators = dict(zip(product.attributes, map(dense, product.operators), strict=True))
    queries = rows_over(sizes, operators)
    std = np.sqrt(np.diag(queries @ np.linalg.pinv(rows.T @ rows) @ queries.T))
    assert std == pytest.approx(release.tables[0].noise_std.reshape(-1), rel=1e-6)


def test_mbi_export_refuses_adaptive_measurements(laplace):
    message = "No interval is known for further answers from a release by 'dawa'"
    with pytest.raises(InputError, match=message):
        ln.export(laplace.parent / "1-dawa", "mbi")


def test_mbi_needs_counts(tmp_path):
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 10)})
    plan = ln.plan(ln.queries(domain, sum="pay"), ln.PureDP(1), strategy="identity")
    ln.release(plan, pd.DataFrame({"sex": ["F", "M"], "pay": [1, 2]}), seed=1, out=tmp_path / "out")
    with pytest.raises(InputError, match="This release measured only sums"):
        ln.export(tmp_path / "out", "mbi")


def test_mbi_reads_the_export(measured_release, page, tmp_path):
    mbi = pytest.importorskip("mbi")

    file = tmp_path / "measurements.json"
    file.write_text(ln.export(measured_release, "mbi"))
    domain, measurements, total = page.format_mbi_measurements(file)
    model = mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=total, iters=300
    )
    table = ln.read_release(measured_release).tables[0]
    cells = np.asarray(model.project(list(table.product.attributes)).datavector())
    # The fit of mbi lies near least squares: within 5 standard errors.
    answers = kronecker([dense(operator) for operator in table.product.operators]) @ cells
    assert np.abs(answers - table.answer.reshape(-1)).max() < 5 * table.noise_std.max()


# --- notebooks ------------------------------------------------------------------------------------


def test_exported_notebook_runs(stored):
    notebook = json.loads(ln.export(stored, "notebook"))
    assert notebook["nbformat"] == 4
    assert notebook["nbformat_minor"] == 5
    assert "**NOT PRIVATE" in "".join(notebook["cells"][1]["source"])
    names = {}
    for cell in notebook["cells"]:
        assert set(cell) >= {"id", "metadata", "source", "cell_type"}
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), "notebook", "exec")
            exec(code, names)  # noqa: S102 - the code is what a reader would run
    assert names["release"].plan.digest() == ln.read_release(stored).plan.digest()


# --- metadata of files and of the data set --------------------------------------------------------


def test_csvw_describes_every_csv_file(stored):
    release = ln.read_release(stored)
    if "csv" not in release.options.formats:
        pytest.skip("this stored release has no CSV files")
    metadata = json.loads(ln.export(stored, "csvw"))
    assert metadata["@context"][0] == "http://www.w3.org/ns/csvw"
    assert len(metadata["tables"]) == len(release.tables) + len(release.statistics)
    types = {"string": str, "integer": int, "double": float}
    for table in metadata["tables"]:
        rows = pd.read_csv(stored / table["url"], dtype=str, keep_default_na=False)
        columns = table["tableSchema"]["columns"]
        primary_key = table["tableSchema"]["primaryKey"]
        assert [column["titles"] for column in columns] == list(rows.columns)
        assert set(primary_key) <= {column["name"] for column in columns}
        assert not rows.duplicated([*rows.columns[: len(primary_key)]]).any()
        for column in columns:
            assert re.fullmatch(r"[A-Za-z0-9%.-][\w%.-]*", column["name"])
            for text in rows[column["titles"]]:
                assert text == "" or types[column["datatype"]](text) is not None


@pytest.fixture
def dcat_entry(tmp_path):
    """Return the DCAT entry of a release by month, in English and German."""
    domain = ln.Domain(month=ln.Dates("2024-01-01", "2024-12-31", "month"))
    plan = ln.plan(ln.queries(domain, month="identity"), ln.PureDP(1))
    options = ln.Options(
        title={"en": "Visits", "de": "Besuche"},
        agency="Office",
        names={"attributes": {"month": {"en": "month", "de": "Monat"}}},
        formats=["csv"],
    )
    rows = pd.DataFrame({"month": ["2024-05-01"] * 9})
    ln.release(plan, rows, seed=1, out=tmp_path / "out", options=options)
    return json.loads(ln.export(tmp_path / "out", "dcat"))


def test_dcat_entry_has_texts_of_each_language(dcat_entry):
    assert dcat_entry["dct:title"] == [
        {"@value": "Visits", "@language": "en"},
        {"@value": "Besuche", "@language": "de"},
    ]
    english, german = dcat_entry["dct:description"]
    assert english["@value"].startswith("NOT PRIVATE")
    assert "nach Monat" in german["@value"]
    keywords = {text["@language"]: text["@value"] for text in dcat_entry["dcat:keyword"][1::2]}
    assert keywords == {"en": "month", "de": "Monat"}


def test_dcat_entry_has_titles_periods_and_marks(dcat_entry):
    assert dcat_entry["@type"] == "dcat:Dataset"
    assert dcat_entry["dct:temporal"]["dcat:startDate"]["@value"] == "2024-01-01"
    assert dcat_entry["dct:temporal"]["dcat:endDate"]["@value"] == "2024-12-31"
    assert [file["dct:title"] for file in dcat_entry["dcat:distribution"]] == [
        "report.html",
        "report.de.html",
        "answers/*.csv",
    ]
    assert dcat_entry["dcat:theme"]["@id"].startswith("https://example.org/FILL-IN")
    prefixes = {key.partition(":")[0] for key in dcat_entry if ":" in key}
    assert prefixes <= set(dcat_entry["@context"])


def test_csvw_without_csv_files_is_refused(tmp_path):
    plan = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    options = ln.Options(formats=["parquet"])
    ln.release(plan, pd.DataFrame({"sex": ["F"]}), seed=1, out=tmp_path / "out", options=options)
    with pytest.raises(InputError, match="CSVW describes CSV files, and this release has none"):
        ln.export(tmp_path / "out", "csvw")
