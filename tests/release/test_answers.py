"""Tests of answers, standard errors and intervals against dense algebra and simulation."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from behind_the_wall import rounded_gaussian
from error.plans import LeastSquares
from example_releases import example_cells, example_plan, example_release
from leastnoise import _frames
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._error import interval_multiplier
from leastnoise._mechanisms import _dawa
from leastnoise._pages import describe_answers
from leastnoise._release import Options, _release, build_release, convert_to_amounts
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy
from leastnoise._workload import queries


@pytest.mark.parametrize(
    "mechanism", [Noise.DISCRETE_LAPLACE, Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_GAUSSIAN]
)
@pytest.mark.parametrize("totals", [True, False])
def test_columns_and_covariances_match_dense_algebra(mechanism, totals):
    plan = example_plan(noise=mechanism, totals=totals)
    release = example_release(plan, seed=3, options=Options(level=0.9))
    measured = release.measurements
    multiplier = interval_multiplier(mechanism, 0.9)
    squares = LeastSquares(measured)
    for table in release.tables:
        measure = table.product.measure
        weights = squares.weights(table.product)
        unit = 1.0 if measure is None else float(measured.domain.measures[measure].unit)
        expected = squares.answers(table.product, release.observation.values) * unit
        std = np.linalg.norm(weights, axis=1) * unit
        rounding = 0.5 / measured.grid * unit
        margin = multiplier * std + rounding
        assert np.allclose(table.answer.reshape(-1), expected, rtol=1e-8, atol=1e-6)
        assert np.allclose(table.noise_std.reshape(-1), std, rtol=1e-8)
        assert np.allclose(table.low.reshape(-1), expected - margin, atol=1e-6)
        assert np.allclose(table.high.reshape(-1), expected + margin, atol=1e-6)

        other_tables = [table, release.tables["q3"]] if measure is None else [table]
        for other in other_tables:
            covariance = weights @ squares.weights(other.product).T * unit**2
            np.testing.assert_allclose(
                release.covariance(table.id, other.id), covariance, rtol=1e-8, atol=1e-8
            )


def test_non_binary_units_are_divided_exactly():
    domain = Domain(
        {"sex": ["F", "M"]},
        measures={
            "pay": Measure("x", 0, 50, unit="0.01"),
            "mass": Measure("x", 0, 5000, unit="1000"),
        },
    ).as_complete()
    pay = queries(domain, sum="pay").products[0]
    mass = queries(domain, sum="mass").products[0]
    assert str(35 * 0.01) != "0.35"
    assert str(convert_to_amounts(pay, np.array(35.0))) == "0.35"
    assert convert_to_amounts(mass, np.array(2.5)) == 2500


def test_tables_are_taken_by_place_id_name_and_slice(release):
    tables = release.tables
    assert repr(tables) == "Tables(9)"
    for key in (2, "q3", "sex x Answer", -7):
        assert tables[key].id == "q3"
    assert [table.id for table in tables[:2]] == ["q1", "q2"]
    assert [table.id for table in tables] == [f"q{number}" for number in range(1, 10)]


def test_unknown_and_ambiguous_tables_are_refused(release):
    tables = release.tables
    with pytest.raises(IndexError, match="no table 9"):
        tables[9]
    message = (
        r"must be called by its id or name; got 'q10'\. This release has q1 \(total\), .*, "
        r"\.\.\.\."
    )
    with pytest.raises(InputError, match=message):
        tables["q10"]
    message = r"Several tables are named 'sex'; take one by its id: q2, q9\."
    with pytest.raises(InputError, match=message):
        tables["sex"]


@pytest.fixture(scope="module")
def projected_tables(observation):
    """Return the tables with optional columns, of non-negative and of whole answers."""
    return build_release(observation, Options(non_negative=True, integer=True)).tables


def test_optional_columns_join_unbiased_ones(release, projected_tables):
    columns = projected_tables["q5"].columns()
    keys = ["query", "sex", "age"]
    unbiased = ["answer", "noise_std", "low", "high"]
    assert list(columns) == [*keys, *unbiased, "answer_non_negative", "answer_integer"]
    assert columns["sex"].tolist() == ["F"] * 5 + ["M"] * 5
    assert columns["age"].tolist() == [f"<= {age}" for age in range(17, 22)] * 2
    for table, projected in zip(release.tables, projected_tables, strict=True):
        assert table.non_negative is None
        assert table.integer is None
        assert table.answer.tolist() == projected.answer.tolist()
        assert table.noise_std.tolist() == projected.noise_std.tolist()


def test_projected_answers_fit_their_query_set(projected_tables):
    assert projected_tables["q7"].non_negative is None  # a difference may be negative
    assert projected_tables["q7"].integer.dtype == np.int64
    assert projected_tables["q3"].integer.sum() == round(float(projected_tables["q3"].answer.sum()))
    # Prefix sums increase, and sums are multiples of 1/4.
    assert np.all(np.diff(projected_tables["q4"].non_negative) >= 0)
    assert np.all(projected_tables["q8"].integer * 4 % 1 == 0)


def test_noise_that_makes_cells_negative_is_projected():
    cells = {name: values * 0 for name, values in example_cells().items()}
    table = example_release(cells=cells, seed=1, options=Options(non_negative=True)).tables["q3"]
    assert table.answer.min() < 0 == table.non_negative.min()
    assert table.non_negative.sum() == pytest.approx(max(table.answer.sum(), 0.0), abs=1e-9)


def test_all_answers_form_one_frame_up_to_a_limit(observation, monkeypatch):
    release = build_release(observation, Options(non_negative=True))
    frame = release.answers
    numbers = ["answer", "noise_std", "low", "high", "answer_non_negative"]
    assert list(frame.columns) == ["query", "cell", *numbers]
    assert frame["cell"].tolist()[:3] == ["total", "sex=F", "sex=M"]
    assert "sex=F, age <= 17" in frame["cell"].tolist()
    assert frame.loc[frame["query"] == "q7", "answer_non_negative"].isna().all()
    answers = frame.loc[frame["query"] == "q5", "answer"].tolist()
    assert answers == release.tables["q5"].answer.reshape(-1).tolist()

    monkeypatch.setattr(_release, "MOST_FRAME_ANSWERS", 10)
    message = r"One data frame may hold at most 10 answers; got 31\. Take one table at a time"
    with pytest.raises(InputError, match=message):
        _ = build_release(observation).answers


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_frame_is_of_the_installed_library(observation, monkeypatch, library):
    monkeypatch.setattr(
        _frames.importlib.util, "find_spec", lambda name: name if name == library else None
    )
    assert type(build_release(observation).answers).__module__.split(".")[0] == library


def test_missing_frame_library_is_named(observation, monkeypatch):
    def raise_import_error(name):
        raise ImportError(name)

    release = build_release(observation)
    message = r"library must be one of 'pandas', 'polars', 'pyarrow'; got 'dask'\."
    with pytest.raises(InputError, match=message):
        release.frame("q1", "dask")
    monkeypatch.setattr(_frames.importlib, "import_module", raise_import_error)
    message = r"library must be one that is installed; got 'polars'.*pip install polars"
    with pytest.raises(InputError, match=message):
        release.frame("q1", "polars")


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, float("nan"), True, "0.95"])
def test_levels_outside_the_open_interval_are_refused(release, level):
    message = r"level must be a number above 0 and below 1, such as 0\.95; got "
    with pytest.raises(InputError, match=message):
        Options(level=level)
    with pytest.raises(InputError, match=message):
        release.answer(release.workload, level=level)


def test_covariances_refuse_unknown_or_mixed_tables(release, observation):
    with pytest.raises(InputError, match="Covariances can be computed only between tables"):
        release.covariance("q1", "q8")
    with pytest.raises(InputError, match="A table must be called by its id or name; got 'q99'"):
        release.covariance("q99")
    with pytest.raises(InputError, match="A table must be called by its id or name; got 'zone'"):
        build_release(observation, Options(covariances=["zone"]))


def test_adaptive_release_answers_only_measured_ranges(monkeypatch):
    # Some answers have an interval only on buckets.
    monkeypatch.setattr(_dawa, "nearly_empty", lambda *_: True)
    domain = Domain(age=Integers(0, 63)).as_complete()
    counts = np.random.default_rng(3).poisson(np.where(np.arange(64) < 20, 200.0, 5.0))
    plan = ln.plan(ln.queries(domain, age="all_ranges"), ln.PureDP("0.01"), strategy="dawa")
    release = ln.release(plan, pd.DataFrame({"age": np.repeat(np.arange(64), counts)}), seed=1)

    (table,) = release.answer(ln.queries(domain, age=ln.ranges([(3, 17), (0, 63)])))
    all_ranges = release.tables[0]
    labels = all_ranges.labels[0]
    rows = [labels.index("3 .. 17"), labels.index("0 .. 63")]
    np.testing.assert_allclose(table.answer, all_ranges.answer[rows])
    np.testing.assert_allclose(table.low, all_ranges.low[rows])
    np.testing.assert_allclose(table.high, all_ranges.high[rows])
    # A range of whole buckets has no approximation error; rounding of 300^2 leaves a root of 5e-6.
    np.testing.assert_allclose(
        table.approximation_std, all_ranges.approximation_std[rows], rtol=1e-6, atol=1e-4
    )
    with pytest.raises(InputError, match=r"do not determine|No interval is known"):
        release.answer(ln.queries(domain, age=ln.predicates([[3, 5]])))


# Levels: errors of any set of places, and the coverage of intervals. The numbers of places in each
# region and town; each town lies within one region.
GROUP_SIZES = {"region": [9, 1, 20], "town": [4, 5, 1, 2, 7, 11]}
LEVELS = {
    name: dict(enumerate(np.repeat(np.arange(len(sizes)), sizes).tolist()))
    for name, sizes in GROUP_SIZES.items()
}
PLACE_DOMAIN = ln.Domain(sex=ln.Coded(2), place=ln.Coded(30, levels=LEVELS)).as_complete()
PLACE_SETS = {
    "region:1, two places": [9, 0, 29],
    "a town across regions": [7, 8, 9, 10, 11, 12],
    "all but one": list(range(29)),
    "one": [17],
}


@pytest.fixture(scope="module")
def levels_release():
    """Return a release of places and their levels, in all and by sex."""
    tables = []
    for sex in ("total", "identity"):
        for place in ("total", ln.level("region"), ln.level("town"), "identity"):
            tables += [ln.queries(PLACE_DOMAIN, sex=sex, place=place)]
    plan = ln.plan(sum(tables[1:], tables[0]), ln.ZCDP("1/18"), strategy="marginals")
    rows = np.random.default_rng(1).geometric(0.1, 500).clip(1, 30) - 1
    return ln.release(plan, pd.DataFrame({"sex": rows % 2, "place": rows}), seed=2)


@pytest.fixture(scope="module")
def squares(levels_release):
    return LeastSquares(levels_release.measurements)


@pytest.mark.parametrize("places", PLACE_SETS.values(), ids=PLACE_SETS)
@pytest.mark.parametrize("sexes", [[0], [0, 1]])
def test_set_of_places_has_error_of_dense_algebra(levels_release, squares, places, sexes):
    query_sets = {"place": ln.predicates([places])}
    if len(sexes) == 1:
        query_sets["sex"] = ln.predicates([sexes])
    (answer,) = levels_release.answer(ln.queries(PLACE_DOMAIN, query_sets))
    query = np.zeros((2, 30))
    query[np.ix_(sexes, places)] = 1
    weights = query.reshape(-1) @ squares.inverse
    assert answer.noise_std.item() == pytest.approx(np.linalg.norm(weights), rel=1e-9)
    grid = levels_release.measurements.grid
    values = np.concatenate(levels_release.observation.values) / grid
    assert answer.answer.item() == pytest.approx(weights @ (values / squares.noise_std), abs=1e-6)


def test_intervals_of_levels_cover_at_every_level(levels_release, squares):
    measurements = levels_release.measurements
    runs = 4000
    noise = []
    for number, block in enumerate(measurements.blocks):
        scale = block.scale * measurements.grid
        entropy = SeededEntropy(number)
        drawn = rounded_gaussian(scale.numerator, scale.denominator, runs * block.rows, entropy)
        noise.append(drawn.reshape(block.rows, runs))
    for table in levels_release.tables:
        covered = np.abs(squares.answers(table.product, noise)) <= table.margins.reshape(-1, 1)
        assert 0.94 <= covered.mean() <= 0.97, table.name


def test_sum_of_cells_omits_rows_its_table_omits():
    domain = ln.Domain(sex=["F", "M"], zone=["north", "south"])
    workload = ln.marginals(domain, ways=2) + ln.marginals(domain, ways=1, of=["zone"])
    rows = pd.DataFrame({"sex": ["F", "M", None] * 20, "zone": ["north", "south"] * 30})
    release = ln.release(ln.plan(workload, ln.PureDP(1000)), rows, seed=1)
    for where in ({"zone": ["north", "south"]}, {}):
        assert release.sum("sex x zone", where).answer.sum() == pytest.approx(40, abs=0.1)
    assert release.sum("zone").answer.sum() == pytest.approx(60, abs=0.1)


@pytest.mark.parametrize("complete", [True, False])
def test_reading_words_say_whether_tables_agree(complete):
    domain = ln.Domain(sex=["F", "M"], zone=["north", "south"])
    workload = ln.marginals(domain.as_complete() if complete else domain, upto=2)
    rows = pd.DataFrame({"sex": ["F", "M"] * 30, "zone": ["north", "south"] * 30})
    release = ln.release(ln.plan(workload, ln.PureDP(1)), rows, seed=1)
    sentence = "Tables agree with each other wherever they overlap." in describe_answers(release)
    assert sentence == complete
