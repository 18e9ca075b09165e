"""``difference``, ``ab-test``, ``power``, ``answer --shares`` and ``[targets]``."""

import json

import pytest

SPEC = """\
[source]
path = "{year}.csv"
[privacy]
epsilon = "2"
[domain.arm]
categories = ["A", "B"]
complete = true
[domain.store]
categories = ["a", "b", "c"]
complete = true
levels.region = {{ groups = {{ north = ["a", "c"], south = ["b"] }} }}
[measures.paid]
clip = [0, 1]
[[workload]]
means = {{ of = "paid", by = ["arm"] }}
[[workload]]
marginals = {{ upto = 2 }}
[targets]
difference = {{ along = "arm", group = "B", against = "A", mean = "paid", size = 600, \
margin = "0.05" }}
ratio = {{ along = "arm", group = "B", against = "A", size = 600, margin = "0.001" }}
"""


@pytest.fixture
def years(folder, run):
    """Make two releases: 300 rows in each arm last year, 600 this year, of whom more paid."""
    for number, (year, rows) in enumerate((("last", 300), ("this", 600))):
        lines = [
            f"{arm},{'abc'[i % 3]},{int(i % 10 < (2 if arm == 'A' else 4))}"
            for arm in "AB"
            for i in range(rows)
        ]
        (folder / f"{year}.csv").write_text("\n".join(["arm,store,paid", *lines, ""]))
        (folder / f"{year}.toml").write_text(SPEC.format(year=year), encoding="utf-8")
        run.succeeds("release", f"{year}.toml", "--out", year, "--seed", str(11 + number))
    return folder


def test_difference_compares_two_groups(years, run):
    shown = run("difference", "this", "arm=B", "arm=A", "--mean", "paid").out
    assert "Mean of paid: B compared with A" in shown
    (row,) = run.json("difference", "this", "arm=B", "arm=A", "--mean", "paid")["rows"]
    assert row["difference_low"] < 0.2 < row["difference_high"]
    assert row["lift_low"] < 1.0 < row["lift_high"]
    regions = run.json("difference", "this", "store:region=north", "store:region=south")["rows"]
    assert regions[0]["ratio_low"] < 2 < regions[0]["ratio_high"]
    shares = run.json("difference", "this", "arm=B", "arm=A", "--share", "store=a")["rows"]
    assert shares[0]["difference_low"] < 0 < shares[0]["difference_high"]
    by_store = run.json("difference", "this", "arm=B", "arm=A", "--cells", "store")["rows"]
    assert [entry["store"] for entry in by_store] == ["a", "b", "c"]


def test_difference_compares_two_releases(years, run):
    (row,) = run.json("difference", "this", "--other", "last", "--where", "store=a")["rows"]
    assert row["difference_low"] < 200 < row["difference_high"]
    assert row["ratio_low"] < 2 < row["ratio_high"]
    arms = run.json("difference", "this", "--other", "last", "--mean", "paid", "--cells", "arm")
    assert all(arm["difference_low"] < 0 < arm["difference_high"] for arm in arms["rows"])
    run.succeeds("difference", "this", "--other", "last", "--cells", "arm")


def test_answer_command_prints_shares(years, run):
    shares = run.json("answer", "this", "--shares", "store:region", "--cells", "arm")["answers"]
    assert [share["cell"] for share in shares][:2] == [
        "arm=A, store:region=north",
        "arm=A, store:region=south",
    ]
    assert shares[0]["low"] < 2 / 3 < shares[0]["high"]
    sums = run.json("answer", "this", "--shares", "arm", "--sum", "paid")["answers"]
    assert sums[1]["low"] < 2 / 3 < sums[1]["high"]


def test_ab_test_shows_the_effect(years, run):
    (row,) = run.json("ab-test", "this", "arm=B", "arm=A", "--mean", "paid")["rows"]
    assert 0 < row["difference_low"] < 0.2 < row["difference_high"]
    assert row["noise_std"] < row["sampling_std"]
    shown = run("ab-test", "this", "arm=B", "arm=A", "--mean", "paid").out
    assert "Standard error of the sample" in shown
    assert "the sampling error. The true difference is the effect" in " ".join(shown.split())


def test_power_is_shown_before_any_data(run):
    assert "power" in run("power", "--mean", "0.1", "--effect", "0.01", "--epsilon", "1").out
    power = run.json("power", "--mean", "0.1", "--effect", "0.01", "--size", "20000")
    assert 0.8 <= power["power"] < 0.81
    assert float(power["budget"]["epsilon"].partition("/")[0]) > 0
    run.is_refused("one of effect, size", "power", "--mean", "0.1", "--effect", "0.1")
    run.is_refused("LOW..HIGH", "power", "--mean", "1", "--effect", "1", "--bounds", "5")


def test_plan_promises_the_errors_of_comparisons(years, run):
    reachable, missed = run.json("plan", "this.toml")["targets"]
    assert reachable["is_met"]
    assert reachable["margin"] <= 0.05
    assert not missed["is_met"]
    shown = run("plan", "this.toml").out
    assert "difference of mean of paid" in shown
    assert "missed" in shown
    (row,) = run.json("difference", "this", "arm=B", "arm=A", "--mean", "paid")["rows"]
    half_width = (row["difference_high"] - row["difference_low"]) / 2
    assert half_width <= 1.05 * reachable["margin"]


@pytest.mark.slow
def test_release_pays_the_least_budget_of_a_comparison(years, run):
    text = (years / "this.toml").read_text(encoding="utf-8").replace('"2"', '"least"')
    (years / "least.toml").write_text(
        "\n".join(line for line in text.splitlines() if not line.startswith("ratio")),
        encoding="utf-8",
    )
    (target,) = run.json("plan", "least.toml")["targets"]
    assert 0.98 * 0.05 < target["margin"] <= 0.05
    run.succeeds("release", "least.toml", "--out", "least", "--seed", "1")
    manifest = json.loads((years / "least" / "manifest.json").read_text(encoding="utf-8"))
    epsilon = run.json("plan", "least.toml")["privacy"]["budget"]["epsilon"]
    assert epsilon in json.dumps(manifest["privacy"])


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("two groups", ["difference", "this"]),
        ("one attribute", ["difference", "this", "arm=A", "store=a"]),
        ("cell in common", ["difference", "this", "arm=A", "arm=A"]),
        ("with --other", ["difference", "this", "arm=A", "arm=B", "--where", "store=a"]),
        ("--labels works only", ["difference", "this", "arm=A", "arm=B", "--labels", "a,b"]),
        ("two releases with --other", ["difference", "this", "arm=A", "--other", "last"]),
        ("a measure of the domain", ["ab-test", "this", "arm=B", "arm=A", "--mean", "age"]),
        ("one kind of answer", ["answer", "this", "--shares", "arm", "--means", "paid"]),
        ("restricted with --where", ["answer", "this", "--shares", "arm", "--where", "store=a"]),
    ],
)
def test_comparisons_refuse_incomparable_tables(years, run, message, arguments):
    run.is_refused(message, *arguments)


NAMED_SURVEY = """
[survey]
cv = "0.02"
[names]
rows = "persons"
[names.attributes]
arm = "group"
[names.measures.paid]
mean = "share of payers"
percent = true
decimals = 1
"""


def test_difference_of_surveys_uses_names_and_samples(folder, run):
    for number, year in enumerate(("last", "this")):
        lines = [f"{arm},a,{int(i % 10 < 2 + number)}" for arm in "AB" for i in range(600)]
        (folder / f"{year}.csv").write_text("\n".join(["arm,store,paid", *lines, ""]))
        spec = SPEC.format(year=year).partition("[targets]")[0] + NAMED_SURVEY
        (folder / f"{year}.toml").write_text(spec, encoding="utf-8")
        run.succeeds("release", f"{year}.toml", "--out", year, "--seed", str(11 + number))
    compare = ("difference", "this", "--other", "last", "--mean", "paid", "--cells", "arm")
    shown = run(*compare).out
    assert "Share of payers by group: this compared with last" in shown
    assert "\xa0pp" in shown
    assert "95% interval, noise only" in shown
    assert "include only the noise" not in shown
    row = run.json(*compare)["rows"][0]
    assert row["difference_both_low"] < row["difference_low"] < 0.1 < row["difference_both_high"]
    options = ("--language", "de", "--labels", "2025, 2024", "--out", "change")
    shown = run.succeeds(*compare, *options).out
    assert "by group: 2025" not in shown
    assert "Differenz" in shown
    assert "die beide Erhebungen angeben" in " ".join(shown.split())
    pages = sorted(path.name for path in (folder / "change").iterdir())
    assert pages == ["comparison.csv", "comparison.en.html", "comparison.html", "comparison.json"]
    english = (folder / "change" / "comparison.en.html").read_text(encoding="utf-8")
    assert "<h1>Share of payers by group: 2025 compared with 2024</h1>" in english
    run.is_refused("exists", *compare, "--out", "change")
    run.is_refused("two different texts", *compare, "--labels", "2025")


def test_unmeasured_mean_lists_the_weighted_mean(folder, run):
    """A release of weighted means has no unweighted mean; the message lists its measures."""
    rows = "".join(f"{'AB'[row % 2]},{row % 9},{1 + row % 3}\n" for row in range(300))
    (folder / "weighted.csv").write_text(f"arm,pay,weight\n{rows}", encoding="utf-8")
    (folder / "weighted.toml").write_text(
        '[source]\npath = "weighted.csv"\n[privacy]\nrho = 9\n'
        '[domain.arm]\ncategories = ["A", "B"]\n'
        "[measures.pay]\nclip = [0, 9]\n[measures.weight]\nclip = [0, 3]\n"
        '[[workload]]\nmeans = { of = "pay", by = ["arm"] }\nweighted_by = "weight"\n',
        encoding="utf-8",
    )
    run.succeeds("release", "weighted.toml", "--out", "weighted", "--seed", "1")
    message = run("difference", "weighted", "arm=A", "arm=B", "--mean", "pay").err
    assert "It measures 'pay weighted by weight'" in message
    shown = run.succeeds(
        "difference", "weighted", "arm=A", "arm=B", "--mean", "pay weighted by weight"
    )
    assert "Mean of pay weighted by weight" in shown.out
