"""Every export of every stored release: complete, readable, with the right privacy loss."""

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
from leastnoise._release import EXPORTS, FILL_IN, REVIEW
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


@pytest.fixture
def changed(laplace, tmp_path):
    """A copy of a stored release whose manifest is changed."""

    def copy(change) -> Path:
        out = shutil.copytree(laplace, tmp_path / "out")
        value = json.loads((out / "manifest.json").read_text())
        change(value)
        (out / "manifest.json").write_text(json.dumps(value))
        return out

    return copy


def test_export_refuses_a_damaged_manifest(changed):
    with pytest.raises(InputError, match="damaged"):
        ln.export(changed(lambda value: value["privacy"].pop("promise")), "review")


# --- review ---------------------------------------------------------------------------------------


def test_review_asks_all_questions_and_marks_open_ones(stored):
    text, questions = (
        ln.export(stored, "review"),
        re.findall(r"^### (\d+)\. .*$", REVIEW.read_text(), re.MULTILINE),
    )
    assert "**NOT PRIVATE" in text  # they came from seeds
    assert questions == [str(number) for number in range(1, len(questions) + 1)]
    answers = [
        part.split("\n", 1)[1].split("\n#")[0].strip()
        for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    ]
    assert len(answers) == len(questions)
    assert all(answers)
    marked = sum(f"**{FILL_IN}**: " in answer for answer in answers)
    assert f"{marked} of {len(questions)}\nquestions have such a mark." in text
    assert "%(" not in text


def test_whole_privacy_loss_is_stated(changed):
    guard = {
        "id": "",
        "guard_share": "1/100",
        "guard_charge": "1/99",
        "guard_number": 1,
        "guard_used": 790,
        "guard_kept": 800,
        "guard_noise_std": 40.0,
    }

    def with_guard(value) -> None:
        value["receipt"] = guard
        value["privacy"]["parameters"] = {"epsilon": "100/99"}

    copy = changed(with_guard)
    release = ln.read_release(copy)
    assert (release.plan.privacy.budget, release.privacy.budget) == (PureDP(1), PureDP("100/99"))
    loss = yaml.safe_load(ln.export(copy, "registry"))["deployment"]["privacy_loss"][
        "privacy_parameters"
    ]
    assert Fraction(loss["epsilon"]) >= Fraction(100, 99)
    assert loss["epsilon"] == pytest.approx(100 / 99)
    assert "A guard counted rows first and cost 1/99 more" in ln.export(copy, "review")


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


FACTS_OF_FILES = {
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


@pytest.mark.parametrize("place", FACTS_OF_FILES, ids=lambda place: ".".join(map(str, place)))
def test_manifest_with_other_facts_than_its_plan_is_refused(changed, place):
    """A manifest has no digest of itself, so what its files say is compared."""
    *holders, last = place
    out = changed(lambda value: None)
    intact = json.loads((out / "manifest.json").read_text())
    for fact in FACTS_OF_FILES[place]:
        value = json.loads(json.dumps(intact))
        reduce(lambda holder, name: holder[name], holders, value)[last] = fact
        (out / "manifest.json").write_text(json.dumps(value))
        with pytest.raises(InputError, match="The manifest was changed"):
            ln.export(out, "review")


# --- the registry of deployments ------------------------------------------------------------------

# The registry's own template, by its keys.
KEYS = {
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
    assert set(entry["deployment"]) == set(KEYS)
    assert [
        part
        for part, keys in KEYS.items()
        if not set(entry["deployment"][part]) <= set(keys.split())
    ] == []
    product = entry["deployment"]["basic"]
    assert (
        product["publication_date"] == json.loads((stored / "manifest.json").read_text())["written"]
    )
    assert product["data_curators"] == [
        {"data_curator_name": FILL_IN, "data_curator_type": FILL_IN}
    ]


def test_losses_of_every_definition(stored):
    privacy = ln.read_release(stored).privacy.budget
    deployment = yaml.safe_load(ln.export(stored, "registry"))["deployment"]
    variants = {"PureDP": "Pure DP", "ApproxDP": "Approximate DP", "ZCDP": "Zero-concentrated DP"}
    assert deployment["dp_variant"]["variant_name"] == variants[type(privacy).__name__]
    for name, value in deployment["privacy_loss"]["privacy_parameters"].items():
        exact = getattr(privacy, name)
        assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 2**50))


# --- mbi ------------------------------------------------------------------------------------------


@pytest.fixture(params=["1-laplace", "1-gaussian", "1-weights", "1-floored"])
def measured(request, laplace):
    return laplace.parent / request.param


def test_mbi_gets_rows_of_equal_noise(measured, page):
    value = json.loads(ln.export(measured, "mbi"))
    release = ln.read_release(measured)
    (total,) = release.answer(ln.queries(release.plan.domain))
    assert value["total"] == {"answer": total.answer.item(), "noise_std": total.noise_std.item()}
    assert value["domain"] == {
        name: release.plan.domain.kind(name).size for name in release.plan.domain.names
    }
    counts = [table for table in page["tables"](measured) if table["measure"] is None]
    assert len(counts) == len(value["measurements"])
    for table, measurement in zip(counts, value["measurements"], strict=True):
        assert measurement["clique"] == table["attributes"]
        factor = measurement["stddev"] / np.sqrt(
            [page["variance"](table["noise"], scale, table["grid"]) for scale in table["scales"]]
        )
        assert measurement["noisy_measurement"] == pytest.approx(
            (table["values"] * factor).tolist(), rel=0.02
        )
        plain = matrix_of(table["matrices"]) * factor[:, None]
        assert np.allclose(
            matrix_of(measurement["matrices"])
            if "matrices" in measurement
            else np.eye(plain.shape[1]),
            plain,
            rtol=0.02,
        )


def matrix_of(matrices):
    return reduce(np.kron, matrices, np.ones((1, 1)))


@pytest.mark.parametrize("name", ["1-laplace", "1-gaussian", "1-weights"])
def test_mbi_measurements_have_the_promised_error(laplace, name):
    # The best unbiased estimate of the first table from what mbi is given has the error that the
    # release states.
    value, release = (
        json.loads(ln.export(laplace.parent / name, "mbi")),
        ln.read_release(laplace.parent / name),
    )
    sizes = {
        one: size
        for one, size in value["domain"].items()
        if any(one in other["clique"] for other in value["measurements"])
    }
    rows = []
    for one in value["measurements"]:
        each = [
            np.array(part)
            for part in one.get(
                "matrices", [np.eye(sizes[attribute]) for attribute in one["clique"]]
            )
        ]
        rows_by_name = dict(zip(one["clique"], each, strict=True))
        rows.append(
            matrix_of(
                [
                    rows_by_name.get(attribute, np.ones((1, size)))
                    for attribute, size in sizes.items()
                ]
            )
            / one["stddev"]
        )
    product = release.tables[0].product
    operators = dict(zip(product.attributes, map(dense, product.operators), strict=True))
    wanted = matrix_of(
        [operators.get(attribute, np.ones((1, size))) for attribute, size in sizes.items()]
    )
    std = np.sqrt(np.diag(wanted @ np.linalg.pinv(np.vstack(rows).T @ np.vstack(rows)) @ wanted.T))
    assert std == pytest.approx(release.tables[0].noise_std.reshape(-1), rel=1e-6)


def test_mbi_export_refuses_adaptive_measurements(laplace):
    with pytest.raises(
        InputError, match="No interval is known for further answers from a release by 'dawa'"
    ):
        ln.export(laplace.parent / "1-dawa", "mbi")


def test_mbi_needs_counts(tmp_path):
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 10)})
    plan = ln.plan(ln.queries(domain, sum="pay"), ln.PureDP(1), strategy="identity")
    ln.release(plan, pd.DataFrame({"sex": ["F", "M"], "pay": [1, 2]}), seed=1, out=tmp_path / "out")
    with pytest.raises(InputError, match="This release measured only sums"):
        ln.export(tmp_path / "out", "mbi")


def test_mbi_reads_the_export(measured, page, tmp_path):
    mbi = pytest.importorskip("mbi")

    file = tmp_path / "measurements.json"
    file.write_text(ln.export(measured, "mbi"))
    domain, measurements, total = page["format_mbi_measurements"](file)
    model = mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=total, iters=300
    )
    table = ln.read_release(measured).tables[0]
    cells = np.asarray(model.project(list(table.product.attributes)).datavector())
    # what mbi fits lies near what least squares give, by the errors that both know
    answers = matrix_of([dense(operator) for operator in table.product.operators]) @ cells
    assert np.abs(answers - table.answer.reshape(-1)).max() < 5 * table.noise_std.max()


# --- notebooks ------------------------------------------------------------------------------------


def test_exported_notebook_runs(stored):
    notebook = json.loads(ln.export(stored, "notebook"))
    assert "**NOT PRIVATE" in "".join(notebook["cells"][1]["source"])
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all(set(cell) >= {"id", "metadata", "source", "cell_type"} for cell in notebook["cells"])
    names = {}
    for cell in (cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        # The code is what a reader would run.
        exec(compile("".join(cell["source"]), "notebook", "exec"), names)  # noqa: S102
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
        assert [column["titles"] for column in columns] == list(rows.columns)
        names = [column["name"] for column in columns]
        assert {*table["tableSchema"]["primaryKey"]} <= {*names}
        assert not rows.duplicated([*rows.columns[: len(table["tableSchema"]["primaryKey"])]]).any()
        for column in columns:
            for text in rows[column["titles"]]:
                assert text == "" or types[column["datatype"]](text) is not None
            assert re.fullmatch(r"[A-Za-z0-9%.-][\w%.-]*", column["name"])


def test_dcat_entry_has_titles_periods_and_marks(tmp_path):
    months = ln.Dates("2024-01-01", "2024-12-31", "month")
    domain = ln.Domain(month=months)
    plan = ln.plan(ln.queries(domain, month="identity"), ln.PureDP(1))
    options = ln.Options(
        title={"en": "Visits", "de": "Besuche"},
        agency="Office",
        names={"attributes": {"month": {"en": "month", "de": "Monat"}}},
        formats=["csv"],
    )
    rows = pd.DataFrame({"month": ["2024-05-01"] * 9})
    ln.release(plan, rows, seed=1, out=tmp_path / "out", options=options)
    entry = json.loads(ln.export(tmp_path / "out", "dcat"))
    assert entry["@type"] == "dcat:Dataset"
    assert entry["dct:title"] == [
        {"@value": "Visits", "@language": "en"},
        {"@value": "Besuche", "@language": "de"},
    ]
    assert entry["dct:temporal"]["dcat:startDate"]["@value"] == "2024-01-01"
    assert entry["dct:temporal"]["dcat:endDate"]["@value"] == "2024-12-31"
    assert "nach Monat" in entry["dct:description"][1]["@value"]
    assert entry["dct:description"][0]["@value"].startswith("NOT PRIVATE")
    assert [file["dct:title"] for file in entry["dcat:distribution"]] == [
        "report.html",
        "report.de.html",
        "answers/*.csv",
    ]
    assert entry["dcat:theme"]["@id"].startswith("https://example.org/FILL-IN")
    keywords = {entry["@language"]: entry["@value"] for entry in entry["dcat:keyword"][1::2]}
    assert keywords == {"en": "month", "de": "Monat"}
    used = {key.partition(":")[0] for key in entry if ":" in key}
    assert used <= set(entry["@context"])


def test_csvw_without_csv_files_is_refused(tmp_path):
    plan = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    options = ln.Options(formats=["parquet"])
    ln.release(plan, pd.DataFrame({"sex": ["F"]}), seed=1, out=tmp_path / "out", options=options)
    with pytest.raises(InputError, match="CSVW describes CSV files, and this release has none"):
        ln.export(tmp_path / "out", "csvw")
