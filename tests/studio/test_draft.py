"""Tests of drafts of a spec: their changes, their text and their margins, without a server."""

from pathlib import Path

import pytest

import leastnoise as ln
from leastnoise._error import interval_multiplier, statistic_errors
from leastnoise._planning import statistic_target_statuses
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec, read_toml
from leastnoise._studio import (
    PlanningState,
    change_draft,
    combine_languages,
    draft_from_text,
    fields_by_group,
    format_spec,
    handle_request,
    read_fields,
    rescale_plan,
    save_spec,
    state_json,
    table_margins,
)
from leastnoise._texts import load_catalogue
from leastnoise._trusted.check import InputError
from studio.conftest import SPEC


@pytest.fixture(scope="module")
def draft():
    return draft_from_text(SPEC, Path())


@pytest.fixture(scope="module")
def plan(draft):
    return plan_spec(draft.spec)


def test_unchanged_draft_is_the_original_text(draft):
    assert format_spec(draft) == SPEC
    names = [row.name(load_catalogue()) for row in draft.rows]
    assert names[:4] == ["total", "sex", "region", "kids"]
    assert len(draft.rows) == 8
    assert draft.settings[-1].weight == "2.0"
    assert draft.settings[-1].target == "margin"
    assert draft.settings[-1].most == "60"


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({"size": "1/2"}, []),
        ({"size": "0.25", "level": 0.9, "objective": "worst"}, []),
        ({"on": False}, [0, 2]),
        ({"weight": "3"}, [7]),
        ({"weight": "3"}, range(7)),
        ({"target": "rmse", "most": "5"}, [1, 2]),
        ({"target": "relative", "most": "0.1", "size_of": "1000"}, [4]),
        ({"target": "", "most": ""}, [7]),
        ({"on": False}, range(7)),
    ],
)
def test_draft_text_keeps_comments(draft, changes, rows):
    changed = change_draft(draft, changes, rows)
    text = format_spec(changed)
    reread = draft_from_text(text, Path())
    assert parse_spec(text, Path()) == reread.spec == changed.spec
    assert text.startswith(SPEC[: SPEC.index("epsilon")])
    assert "# a year" in text
    assert 'categories = ["north", "south", "<b>west</b>"]' in text
    assert format_spec(change_draft(changed, {})) == text
    assert sorted(map(str, reread.settings)) == sorted(
        str(setting) for setting in changed.settings if setting.on
    )


def test_draft_has_rho_least_budget_and_delta(draft):
    with_rho = draft_from_text(SPEC.replace("epsilon = 1", 'rho = "1/8"'), Path())
    assert change_draft(with_rho, {"size": "2"}).spec.privacy.budget == ln.ZCDP(2)

    delta_spec = SPEC.replace("epsilon = 1", 'epsilon = 1\ndelta = "1e-9"')
    with_delta = change_draft(draft_from_text(delta_spec, Path()), {"delta": "1e-6"})
    assert with_delta.spec.privacy.budget == ln.ApproxDP(1, "1e-6")

    with_least_budget = change_draft(draft, {"size": "least"})
    assert isinstance(with_least_budget.spec.privacy, ln.Least)
    assert 'epsilon = "least"' in format_spec(with_least_budget)


@pytest.mark.parametrize(
    ("changes", "rows", "message"),
    [
        ({"size": "0"}, [], "epsilon must be"),
        ({"size": "a"}, [], "epsilon must be"),
        ({"size": 1}, [], "a value must be a text"),
        ({"level": 1}, [], "level must be"),
        ({"level": "0.9"}, [], "level must be"),
        ({"objective": "none"}, [], "objective must be"),
        ({"on": False}, range(8), "keep at least one"),
        ({"on": "no"}, [0], "on must be true or false"),
        ({"weight": "-1"}, [0], "weight must be"),
        ({"target": "relative", "most": "0.1"}, [0], "needs a size"),
        ({"target": "most"}, [0], "target must be"),
        ({"weight": "1"}, [8], "a row must be"),
        ({"weight": "1"}, [True], "a row must be"),
        ({"path": "other.csv"}, [], "a changed field must be"),
    ],
)
def test_invalid_draft_settings_are_refused(draft, changes, rows, message):
    with pytest.raises(InputError, match=message):
        change_draft(draft, changes, rows)


def test_left_out_table_keeps_other_margins_until_planned(draft, plan):
    quick = rescale_plan(plan, change_draft(draft, {"on": False}, [1, 7]).spec)
    assert len(quick.workload.products) == 6
    margins_before = table_margins(plan, 0.95)
    for question, margin in table_margins(quick, 0.95).items():
        assert margin.typical == margins_before[question].typical


def test_unanswered_tables_have_no_margin_yet(draft):
    smaller_draft = change_draft(draft, {"on": False}, range(1, 8))
    total = ln.plan(smaller_draft.spec.workload, smaller_draft.spec.privacy, strategy="workload")
    margins = table_margins(rescale_plan(total, draft.spec), 0.95)
    assert list(margins) == [draft.rows[0].table_keys[0]]
    for text, replacement in (("[0, 5]", "[0, 6]"), ("epsilon", "rho")):
        other_draft = draft_from_text(SPEC.replace(text, replacement), Path())
        assert rescale_plan(total, other_draft.spec) is None


def test_target_is_largest_margin_or_relative_to_size(draft, plan):
    (question,) = draft.rows[7].table_keys
    last = table_margins(plan, 0.95)[question]
    assert last.target.most == 60
    assert last.target.error == pytest.approx(last.largest)
    assert last.target.is_met is (last.largest <= 60)
    assert last.typical <= last.largest
    assert last.share is None
    sized_spec = change_draft(draft, {"size_of": "1000"}, [7]).spec
    sized = table_margins(rescale_plan(plan, sized_spec), 0.95)[question]
    assert sized.share == pytest.approx(last.typical / 1000)


def test_draft_is_saved_and_read_back(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("one")
    path.chmod(0o640)
    assert save_spec(path, "one", "a.toml", "two") == path
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert save_spec(path, "two", "b.toml", "three").read_text() == "three"


INVALID_NAMES = (
    "../c.toml",
    "/c.toml",
    "c",
    ".toml",
    ".c.toml",
    "",
    "c\n.toml",
    "d/c.toml",
    "d\\c.toml",
)


@pytest.mark.parametrize(
    ("opened", "text_before", "name", "message"),
    [
        *(("a.toml", "two", name, "must have the name of a file") for name in INVALID_NAMES),
        ("a.toml", "two", "b.toml", "already"),
        ("a.toml", "one", "a.toml", "was changed since"),
        ("no/a.toml", "one", "a.toml", "cannot be written"),
    ],
)
def test_refused_save_leaves_the_files(tmp_path, opened, text_before, name, message):
    (tmp_path / "a.toml").write_text("two")
    (tmp_path / "b.toml").write_text("three")
    with pytest.raises(InputError, match=message):
        save_spec(tmp_path / opened, text_before, name, "four")
    assert (tmp_path / "a.toml").read_text() == "two"
    assert (tmp_path / "b.toml").read_text() == "three"
    assert len(list(tmp_path.iterdir())) == 2


STATISTICS_SPEC = """
[privacy]
epsilon = 4
[domain]
a = { integers = [0, 9], outside = "clip" }
b = { size = 2 }
[measures.pay]
column = "pay"
clip = [0, 100]
[[workload]]
marginals = { ways = 1 }
[[workload]]
means = { of = "pay", by = ["b"] }
[[workload]]
quantiles = { of = "a", at = ["0.25", "1/2"], by = ["b"] }
size = 400
[[workload]]
quantiles = { of = "a", at = ["1/2"], by = ["b"] }
[[workload]]
cdf = { of = "a" }
size = 1000
[plan]
strategy = "workload"
"""


@pytest.fixture(scope="module")
def statistics_draft():
    return draft_from_text(STATISTICS_SPEC, Path())


@pytest.fixture(scope="module")
def sized_draft(statistics_draft):
    """Return the draft with a public size of 300 for the mean."""
    return change_draft(statistics_draft, {"size_of": "300"}, [2])


@pytest.fixture(scope="module")
def mean_margin(sized_draft):
    """Return the margin of the mean in the draft with a public size."""
    return statistic_margin(plan_spec(sized_draft.spec), 0)


def statistic_margin(plan, number):
    """Return half of the width of the interval of a statistic."""
    multiplier = interval_multiplier(plan.measured().noise, 0.95)
    return multiplier * statistic_errors(plan)[number].std_error


def verdicts(draft, plan):
    """Return the text on the promise of each row of the planning page."""
    return [row["verdict"] for row in state_json(PlanningState(1, draft, plan, ready=True))["rows"]]


def test_statistic_rows_have_names_and_kinds(statistics_draft):
    rows = statistics_draft.rows[2:]
    names = [row.name(load_catalogue()) for row in rows]
    assert [name.partition(" (")[0] for name in names] == [row.statistic.name for row in rows]
    assert names[0] == "mean of pay by b (count of pay by b, sum of pay by b)"
    assert [row.statistic for row in statistics_draft.rows[:2]] == [None, None]
    assert [row.statistic.kind for row in rows] == ["means", "quantiles", "quantiles", "cdf"]
    assert [len(row.statistic.at) for row in rows[1:3]] == [2, 1]


def test_statistic_row_states_its_promise(statistics_draft, sized_draft, mean_margin):
    plan = plan_spec(statistics_draft.spec)
    row_verdicts = verdicts(statistics_draft, plan)
    share = load_catalogue().format_percent(statistic_margin(plan, 3), 2)
    assert row_verdicts[:3] == ["", "", "state a public size to see its margin"]
    assert row_verdicts[5] == f"shares: ± {share}, for this size"

    margin = load_catalogue().format_error(mean_margin)
    sized_verdicts = verdicts(sized_draft, plan_spec(sized_draft.spec))
    assert sized_verdicts[2] == f"pay: at most ± {margin}, for this size"


def test_statistic_rows_are_left_out_and_weighted(statistics_draft):
    without_mean = change_draft(statistics_draft, {"on": False}, [2])
    workload = change_draft(without_mean, {"weight": "3"}, [5]).spec.workload
    kinds = [statistic.kind for statistic in workload.statistics]
    assert kinds == ["quantiles", "quantiles", "cdf"]
    assert workload.products[-1].weight == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (2, "the margin of a mean must be given with a size"),
        (5, "Set other targets, and targets of sums, for queries"),
    ],
)
def test_invalid_statistic_target_is_refused(statistics_draft, row, message):
    with pytest.raises(InputError, match=message):
        change_draft(statistics_draft, {"target": "margin", "most": "5"}, [row])


def test_missed_statistic_target_is_shown(sized_draft, mean_margin):
    target = str(mean_margin / 2)
    draft = change_draft(sized_draft, {"target": "margin", "most": target}, [2])
    plan = plan_spec(draft.spec)
    row = state_json(PlanningState(1, draft, plan))["rows"][2]
    (status, *_) = statistic_target_statuses(plan, 0.95)
    error = load_catalogue().format_error(status.error)
    assert row["verdict"] == f"pay: at most ± {error}, for this size"
    assert status.error > statistic_margin(plan, 0)
    assert row["missed"]
    assert row["set"][2:4] == ["margin", target]


NAMED_SPEC = """[source]
path = "people.csv"
[privacy]
rho = "1"
[domain.sex]
categories = ["f", "m"]
[measures.pay]
clip = [0, 100]
[measures.hours]
clip = [0, 60]
[measures.w]
clip = [0, 10]
[[workload]]
means = { of = "pay", by = ["sex"] }
weighted_by = "w"
size = 1000
[[workload]]
means = { of = "pay", by = ["sex"] }
size = 1000
[[workload]]
correlations = { of = ["pay", "hours"] }
size = 1000
[[workload]]
variances = { of = "hours" }
size = 1000
[names]
attributes.sex = "gender"
measures.pay = "net income"
measures.hours = "working time"
measures.w = { name = "weight", sum = "population" }
"""


def test_page_has_display_names_instead_of_column_names(tmp_path):
    """A weighted mean has the title of the mean, and margins name the measures in words."""
    draft = draft_from_text(NAMED_SPEC, tmp_path)
    names = [row.name(draft.catalogue) for row in draft.rows]
    assert [name.partition(" (")[0] for name in names[:2]] == ["Mean of net income by gender"] * 2
    assert "population with a value of net income" in names[0]
    weighted, unweighted, covariance, variance = verdicts(draft, plan_spec(draft.spec))
    assert weighted.startswith("net income: at most ± ")
    assert unweighted.startswith("net income: at most ± ")
    assert covariance.startswith("covariance of net income x working time: at most ± ")
    assert variance.startswith("variance of working time: at most ± ")
    subjects = [subject for _, fields in fields_by_group(draft) for subject, _ in fields]
    assert {"gender (sex)", "net income (pay)", "weight (w)"} <= {*subjects}


FIELDS_SPEC = """[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [0, 99]
levels.group = { width = 10 }
[measures.pay]
clip = [0, 60000]
[[workload]]
means = { of = "pay", by = ["sex"] }
[names.attributes]
sex = { en = "sex", de = "Geschlecht" }
"""


def test_draft_writes_names_outputs_and_survey(tmp_path):
    draft = draft_from_text(FIELDS_SPEC, tmp_path)
    assert draft.field_texts["names/attributes/sex/name/de"] == "Geschlecht"
    texts = {
        "names/rows/en": "persons",
        "names/rows/de": "Personen",
        "names/unit/en": "household",
        "names/attributes/sex/unit/en": "code",
        "names/levels/age:group/name/en": "age group",
        "names/measures/pay/mean/en": "mean pay",
        "output/title/en": "Pay",
        "output/below": "10",
        "survey/design_effect": "1.5",
        "survey/sample": "900",
        "survey/population": "90000",
    }
    changed = change_draft(draft, {f"field:{name}": text for name, text in texts.items()})
    options = changed.spec.options
    german = options.catalogue("de").names
    assert german.rows == "Personen"
    assert german.unit == "household"
    assert german.attribute("sex").name == "Geschlecht"
    assert german.attribute("sex").unit == "code"
    assert german.level("age:group").name == "age group"
    assert german.measure("pay").mean == "mean pay"
    assert options.title == "Pay"
    assert options.below == 10
    assert options.survey["sample"] == "900"

    removed = change_draft(changed, {f"field:{name}": "" for name in texts})
    assert "persons" not in format_spec(removed)
    assert draft.spec.options == draft_from_text(format_spec(removed), tmp_path).spec.options


FACTS_SPEC = """[source]
path = "people.csv"
[privacy]
rho = "1/2"
[domain.sex]
categories = ["F", "M"]
[domain.store]
categories = ["a", "b"]
levels.region = { groups = { north = ["a"], south = ["b"] } }
[measures.pay]
clip = [0, 60000]
[[workload]]
queries = { sex = "identity", store = "identity" }
[[workload]]
queries = { sex = "identity" }
[[workload]]
means = { of = "pay", by = ["sex"] }
# of the register
[[public]]
queries = { sex = "identity", store = "identity" }
counts = [10, 20, 30, 40]
[output]
formats = ["csv", "sdmx"]
[output.sdmx]
codes.sex = { F = "W" }
"""


def draft_with_facts(folder):
    (folder / "register.csv").write_text("store:region,people\nnorth,40\nsouth,60\n")
    (folder / "titles.csv").write_text("code,title,titel\nF,women,Frauen\nM,men,Männer\n")
    return draft_from_text(FACTS_SPEC, folder)


def change_fields(draft, texts):
    """Change one field after the other, as a browser does, and plan each draft."""
    for name, text in texts.items():
        draft = change_draft(draft, {f"field:{name}": text})
    return draft


def test_draft_writes_public_totals_and_complete_columns(tmp_path):
    draft = draft_with_facts(tmp_path)
    facts = {
        "domain/sex/complete": "true",
        "public//counts": "100",
        "public/sex/counts": "30, 70",
        "public/store:region/file": "register.csv",
        "public/store:region/column": "people",
    }
    changed = change_fields(draft, facts)
    table = read_toml(format_spec(changed))
    assert table["domain"]["sex"]["complete"] is True
    assert table["public"][1:] == [
        {"counts": 100},
        {"queries": {"sex": "identity"}, "counts": [30, 70]},
        {
            "queries": {"store": {"level": "region"}},
            "counts": {"file": "register.csv", "column": "people"},
        },
    ]
    assert changed.field_texts["public/sex/counts"] == "30, 70"
    assert read_fields(table, changed.fields)["public/sex/counts"] == "30 70"
    assert "# of the register" in format_spec(changed)

    restored = change_fields(changed, dict.fromkeys(facts, ""))
    assert format_spec(restored) == FACTS_SPEC


def test_first_total_of_a_spec_is_written_and_removed(tmp_path):
    draft = draft_from_text(FIELDS_SPEC, tmp_path)
    changed = change_fields(draft, {"public/sex/counts": "4 5"})
    assert changed.spec.public[0]["counts"] == [4, 5]
    changed = change_fields(changed, {"public/sex/counts": "6 7"})
    assert changed.spec.public[0]["counts"] == [6, 7]
    restored = change_fields(changed, {"public/sex/counts": ""})
    assert "public" not in format_spec(restored)
    inline = f"public = [{{ counts = 9 }}]\n{FIELDS_SPEC}"
    changed = change_fields(draft_from_text(inline, tmp_path), {"public/sex/counts": "4 5"})
    assert [entry["counts"] for entry in changed.spec.public] == [[9], [4, 5]]


def test_draft_writes_labels_of_a_file_when_all_is_stated(tmp_path):
    draft = draft_with_facts(tmp_path)
    labels = {
        "domain/sex/labels/file": "titles.csv",
        "domain/sex/labels/key": "code",
        "domain/sex/labels/value/en": "title",
        "domain/sex/labels/value/de": "titel",
    }
    changed = change_fields(draft, labels)
    assert changed.spec.options.labels["sex"]["M"] == {"en": "men", "de": "Männer"}
    without_column = change_fields(changed, {"domain/sex/labels/key": ""})
    assert "labels" not in format_spec(without_column)
    again = change_fields(without_column, {"domain/sex/labels/key": "code"})
    assert format_spec(again) == format_spec(changed)


def test_survey_numbers_can_be_filled_in_one_by_one(tmp_path):
    numbers = {"survey/design_effect": "1.5", "survey/sample": "900", "survey/population": "90000"}
    changed = change_fields(draft_from_text(FIELDS_SPEC, tmp_path), numbers)
    assert changed.spec.options.survey["sample"] == "900"


def test_draft_writes_ids_of_sdmx(tmp_path):
    draft = draft_with_facts(tmp_path)
    assert draft.field_texts["output/sdmx/codes/sex"] == "F = W"
    ids = {
        "output/sdmx/agency": "AT1",
        "output/sdmx/period": "2025",
        "output/sdmx/flows": "quantity",
        "output/sdmx/units/rows": "PS",
        "output/sdmx/units/pay": "EUR",
        "output/sdmx/status/published": "A",
        "output/sdmx/concepts/sex": "SEX",
        "output/sdmx/concepts/store:region": "REF_AREA",
        "output/sdmx/codes/sex": "F = F\nM = M",
    }
    changed = change_fields(draft, ids)
    assert read_toml(format_spec(changed))["output"]["sdmx"] == {
        "agency": "AT1",
        "period": "2025",
        "flows": "quantity",
        "units": {"rows": "PS", "pay": "EUR"},
        "status": {"published": "A"},
        "concepts": {"sex": "SEX", "store:region": "REF_AREA"},
        "codes": {"sex": {"F": "F", "M": "M"}},
    }
    removed = change_fields(changed, {**dict.fromkeys(ids, ""), "output/sdmx/flows": "table"})
    assert "sdmx" not in read_toml(format_spec(removed))["output"]
    assert not any(field.group == "sdmx" for field in draft_from_text(FIELDS_SPEC, tmp_path).fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("public/sex/counts", "30 71"),
        ("public/sex/counts", "30"),
        ("public/sex/counts", "many"),
        ("output/sdmx/agency", "1 1"),
        ("output/sdmx/codes/sex", "F"),
        ("domain/sex/complete", "a\nb"),
    ],
)
def test_draft_refuses_wrong_facts_and_ids(tmp_path, name, value):
    with pytest.raises(InputError):
        change_draft(draft_with_facts(tmp_path), {f"field:{name}": value})


@pytest.mark.parametrize(
    ("name", "value"), [("names/nothing/en", "x"), ("names/rows/en", "a\nb"), ("names/rows/en", 5)]
)
def test_draft_refuses_unknown_or_unprintable_fields(tmp_path, name, value):
    draft = draft_from_text(FIELDS_SPEC, tmp_path)
    with pytest.raises(InputError):
        change_draft(draft, {f"field:{name}": value})


def test_texts_of_some_languages_are_all_kept():
    texts = {"en": "persons", "de": "Personen", "fr": ""}
    assert combine_languages(texts) == {"en": "persons", "de": "Personen"}
    assert combine_languages({"en": "persons", "de": "", "fr": ""}) == "persons"
    assert combine_languages({"en": "", "de": ""}) == ""


def test_many_columns_leave_the_fields_of_the_survey():
    columns = "".join(f'[domain.extra{number}]\ncategories = ["a", "b"]\n' for number in range(200))
    fields = draft_from_text(SPEC + columns, Path()).fields
    assert fields[-1].group == "survey"
    assert sum(field.group == "survey" for field in fields) > 1


def list_output_texts():
    """Return the keys of [output] for which the page has fields of texts."""
    fields = draft_from_text(SPEC, Path()).fields
    return {field.path[1] for field in fields if field.group == "output" and field.is_text}


def test_texts_for_readers_have_a_field_if_they_have_a_label(monkeypatch):
    assert list_output_texts() == {"title", "source", "agency", "contact"}
    texts = ("title", "text_without_label")
    monkeypatch.setattr("leastnoise._studio._publication_fields.PUBLICATION_TEXTS", texts)
    assert list_output_texts() == {"title"}


def test_options_that_a_release_refuses_are_refused_with_the_plan(tmp_path):
    """A spec was planned and saved although its release refused the option top_down."""
    text = """
[source]
path = "rows.csv"
[privacy]
epsilon = 1
[domain.sex]
categories = ["F", "M"]
complete = true
[domain.age]
integers = [0, 3]
complete = true
[[workload]]
queries = { sex = "identity" }
[[workload]]
queries = { age = "identity" }
[output]
top_down = true
"""
    replies = []
    request = {"text": text, "folder": str(tmp_path), "language": "de"}
    handle_request(request, replies.append)
    (fault,) = [reply["error"] for reply in replies if "error" in reply]
    assert fault.startswith(
        "Ganzzahlige Ergebnisse, die sich addieren (top_down = true), benötigen"
    )
    assert not any("plan" in reply for reply in replies)
    joint = text.replace("[output]", "[[workload]]\nmarginals = { ways = 2 }\n[output]")
    replies.clear()
    handle_request({**request, "text": joint}, replies.append)
    assert any("plan" in reply for reply in replies)
