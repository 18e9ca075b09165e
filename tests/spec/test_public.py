"""Public counts of a spec: parsed, stored in plans, and met by every kind of answer."""

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._estimation import public_counts_of_plan
from leastnoise._pages import list_uncovered_errors
from leastnoise._plan import Plan
from leastnoise._release import Options, check_options, make_records
from leastnoise._session import plan_spec
from leastnoise._trusted.check import InputError
from simulated import releases
from spec.public_totals import (
    COUNTS,
    PAIRS,
    PUBLIC_SEX_AND_REGION,
    REGION,
    ROWS,
    SEX,
    SURVEY,
    spec_of,
)


def public_sums(answers, product):
    """Return the public sums of a pair."""
    names = product.attributes
    cells = answers.reshape(product.shape)
    totals = {}
    if "sex" in names:
        totals["sex"] = cells.sum(axis=1 - names.index("sex"))
    if "store" in names:
        stores = cells.sum(axis=1 - names.index("store"))
        totals["region"] = np.array([stores[[0, 2]].sum(), stores[[1, 3, 4, 5]].sum()])
    return totals


@pytest.mark.parametrize(
    "budget", ['epsilon = "1/4"', 'rho = "1/20"', 'epsilon = "1/2"\ndelta = "1e-6"']
)
@pytest.mark.parametrize("strategy", ["marginals", "workload", "auto"])
def test_every_kind_of_answer_holds_public_sums(strategy, budget):
    plan = plan_spec(spec_of(PUBLIC_SEX_AND_REGION, strategy, budget))
    assert {
        len(counts.sums.counts) for counts in public_counts_of_plan(Plan.from_json(plan.to_json()))
    } == {2}
    (release,) = releases(
        plan, SURVEY, [3], Options(non_negative=True, integer=True, local_non_negative=True)
    )
    for table in release.tables:
        for kind in (table.answer, table.non_negative, table.integer, table.local):
            for name, totals in public_sums(np.asarray(kind, dtype=float), table.product).items():
                assert totals == pytest.approx(COUNTS[name], abs=1e-4), (name, table.name)
        assert table.integer.dtype.kind == "i"
        assert min(table.non_negative.min(), table.local.min(), table.integer.min()) >= 0
    answers = release.answer(
        ln.queries(plan.domain, sex="identity") + ln.queries(plan.domain, store={"level": "region"})
    )
    for table, name in zip(answers, ("sex", "region"), strict=True):
        assert table.answer.tolist() == table.low.tolist() == table.high.tolist() == COUNTS[name]
        assert np.abs(table.noise_std).max() == 0


@pytest.mark.parametrize("public", [REGION % str(COUNTS["region"])[1:-1], PUBLIC_SEX_AND_REGION])
def test_tables_of_levels_that_agree_hold_them_too(public):
    table = '[[workload]]\nqueries = { sex = "identity", store = { level = "region" } }'
    workload = f'queries = {{ sex = "identity", store = "identity" }}\n{table}'
    (release,) = releases(
        plan_spec(spec_of(public, workload=workload)),
        SURVEY,
        [5],
        Options(non_negative=True, integer=True),
    )
    cells, regions = release.tables
    for kind in ("non_negative", "integer"):
        store_answers, coarse = (
            np.asarray(getattr(table, kind), dtype=float).reshape(2, -1)
            for table in (cells, regions)
        )
        assert np.stack(
            [store_answers[:, [0, 2]].sum(axis=1), store_answers[:, [1, 3, 4, 5]].sum(axis=1)],
            axis=1,
        ) == pytest.approx(coarse)
        assert coarse.sum(axis=0) == pytest.approx(COUNTS["region"])
        assert store_answers.min() >= 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "strategy", "workload"),
    [
        ('rho = "1/20"', "marginals", PAIRS),
        ('epsilon = "1/4"', "p_identity", 'queries = { age = "prefix" }'),
    ],
)
def test_promised_error_matches_releases(budget, strategy, workload):
    public = PUBLIC_SEX_AND_REGION if workload == PAIRS else f"[[public]]\ncounts = {ROWS}"
    plan = plan_spec(spec_of(public, strategy, budget, workload))
    without = plan_spec(spec_of("", strategy, budget, workload))
    assert (
        plan.expected_error().total_squared_error
        < 0.99 * without.expected_error().total_squared_error
    )
    assert plan.lower_bound() == 0
    assert plan.measured() == without.measured()
    truth = [
        table.answer
        for table in next(
            iter(
                releases(plan_spec(spec_of("", strategy, 'epsilon = "60"', workload)), SURVEY, [0])
            )
        ).tables
    ]
    squares = np.zeros(len(truth))
    tables = [releases_of.tables for releases_of in releases(plan, SURVEY, range(150))]
    for simulated in tables:
        squares += [
            np.mean((table.answer - exact) ** 2) / len(tables)
            for table, exact in zip(simulated, truth, strict=True)
        ]
    assert np.sqrt(squares) == pytest.approx(
        [table.rmse for table in plan.expected_error().tables], rel=0.1
    )


@pytest.mark.parametrize("public", [PUBLIC_SEX_AND_REGION, f"[[public]]\ncounts = {ROWS}"])
def test_simulated_noise_keeps_public_counts(public):
    plan = plan_spec(spec_of(public, "identity", 'epsilon = "1"'))
    release = next(iter(releases(plan, SURVEY, [3])))
    truth = np.searchsorted(np.sort(SURVEY["age"]), np.arange(12), side="right") / ROWS
    for draws in (19, 199):  # as answers to noise, and by the matrix of the estimate
        curve = ln.cdf(release, "age", draws=draws)
        assert ((curve.low <= truth) & (truth <= curve.high)).all()
        assert (curve.high - curve.low).max() < 0.2


@pytest.mark.parametrize("budget", ['rho = "1/200"', 'epsilon = "20"'])
def test_model_and_its_records_hold_public_sums(budget):
    plan = plan_spec(spec_of(PUBLIC_SEX_AND_REGION, "model", budget))
    assert [step.name for step in plan.adaptive.steps] in (["alone", "pairs"], ["independent"])
    (release,) = releases(plan, SURVEY, [4])
    assert release.finding.facts()["rows"] == ROWS
    for table in release.tables:
        for name, totals in public_sums(table.answer, table.product).items():
            assert totals == pytest.approx(COUNTS[name], abs=1e-4), table.name
    (sex,) = (
        release.outcome.estimator()
        .estimate(ln.queries(plan.domain, sex="identity").products[0])
        .values[None]
    )
    assert sex.tolist() == COUNTS["sex"]
    for times, rows in ((1, None), (2, 2 * ROWS)):
        records = make_records(release.outcome, rows)
        for product in plan.workload:
            for name, totals in public_sums(records.counts(product), product).items():
                assert totals.tolist() == [times * count for count in COUNTS[name]]
    assert "The spec states these counts as public: sex; store:region" in " ".join(
        list_uncovered_errors(release)
    )


def test_records_keep_public_counts_of_impossible_values():
    never = '[[impossible]]\nsex = ["M"]\nage = [0, 2]\n'
    plan = plan_spec(spec_of(SEX % "100, 300" + never, "model", 'rho = "1/200"'))
    (release,) = releases(plan, SURVEY, [4])
    counts = make_records(release.outcome).counts(
        ln.marginals(plan.domain, ways=2, of=("sex", "age")).products[0]
    )
    assert counts.sum(axis=1).tolist() == [100, 300]
    assert counts[1, :3].tolist() == [0, 0, 0]


def test_counts_of_a_file(tmp_path):
    file = tmp_path / "register.csv"
    file.write_text("store:region,sex,people\nsouth,F,3\nnorth,F,1\nnorth,M,2\nsouth,M,4\n")
    section = '[[public]]\nqueries = { sex = "identity", store = { level = "region" } }\n'
    section += 'counts = { file = "register.csv", column = "people" }\n'
    assert spec_of(section, folder=tmp_path).public[0]["counts"] == [1, 3, 2, 4]
    # Counts that follow from other counts are left out.
    (counts,) = public_counts_of_plan(
        plan_spec(
            spec_of(
                section + SEX % "4, 6" + REGION % "3, 7" + "[[public]]\ncounts = 10",
                folder=tmp_path,
            )
        )
    )
    assert counts.product.attributes == ("sex", "store")
    lacks = "must have a number for every cell of sex x store:region; F, south has none"
    for text, message in (("north,F,1", lacks), ("north,F,x", "got 'x'")):
        file.write_text(f"store:region,sex,people\n{text}\n")
        with pytest.raises(InputError, match=message):
            spec_of(section, folder=tmp_path)


CROSSED = (
    SEX.replace('"identity" }', '"identity", age = { ranges = [[0, 5], [6, 11]] } }') % "1, 0, 0, 2"
)
CROSSED += f'[[public]]\nqueries = {{ age = "identity" }}\ncounts = {[1, *[0] * 10, 2]}'


@pytest.mark.parametrize(
    ("public", "strategy", "message"),
    [
        (
            "[[public]]\ncounts = [1, 2]",
            "auto",
            r"\[\[public\]\] number 1: Public counts of total must be one whole number",
        ),
        ("[[public]]", "auto", "must be one whole number of at least 0"),
        (SEX % "1", "auto", "Public counts of sex must be 2 whole numbers"),
        (SEX % "1, -1", "auto", "of at least 0, in the order of its cells; got 1, -1"),
        (SEX % '1, "2"', "auto", "must be 2 whole numbers"),
        (
            SEX % "1, 2" + "[[public]]\ncounts = 4",
            "auto",
            "Public counts must agree; the public counts of sex and total do not",
        ),
        (
            '[[public]]\nqueries = { age = "prefix" }\ncounts = [1]',
            "auto",
            "for groups in which each cell occurs exactly once",
        ),
        (
            SEX % "1, 2" + CROSSED,
            "auto",
            "must share no attribute, or one of them must follow from the other",
        ),
        (
            SEX % "1, 2",
            "dawa",
            r"'model' or a data-independent strategy, for a spec with \[\[public\]\]; got 'dawa'",
        ),
        ("[[public]]\nqueries = 3", "auto", "queries must be"),
    ],
)
def test_invalid_public_counts_are_refused(public, strategy, message):
    with pytest.raises(InputError, match=message):
        plan_spec(spec_of(public, strategy))


def test_options_against_public_counts_are_refused_unpaid():
    plan = plan_spec(spec_of(PUBLIC_SEX_AND_REGION))
    with pytest.raises(InputError, match="nnls must be left out where counts are public"):
        check_options(plan, Options(nnls=True))
    with pytest.raises(InputError, match="nnls must be left out where counts are public"):
        next(iter(releases(plan, SURVEY, [3]))).with_nnls()
    ages = "[[public]]\nqueries = { age = { ranges = [[0, 5], [6, 11]] } }\ncounts = [200, 200]\n"
    with pytest.raises(
        InputError, match="left out where a table has more than 2 tables of public counts"
    ):
        check_options(
            plan_spec(spec_of(PUBLIC_SEX_AND_REGION + ages, workload="marginals = { ways = 3 }")),
            Options(integer=True),
        )
