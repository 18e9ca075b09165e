"""A comparison has no number that its releases do not publish, by any way to ask for it."""

import itertools

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._pages import without_suppressed

REGIONS = ("east", "north", "south", "west")
# Persons by region and sex. Only "west" is smaller than the limit, and so is "M" in "south".
SIZES = {
    ("east", "F"): 300, ("east", "M"): 260, ("north", "F"): 240, ("north", "M"): 280,
    ("south", "F"): 220, ("south", "M"): 12, ("west", "F"): 9, ("west", "M"): 8,
}  # fmt: skip
BELOW = 50
LEVELS = {"coast": {"north": "sea", "west": "sea", "east": "land", "south": "land"}}


def domain_of():
    return ln.Domain(
        region=ln.Categories(REGIONS, levels=LEVELS, complete=True),
        sex=ln.Categories(["F", "M"], complete=True),
        measures={"pay": ln.Measure("pay", 0, 100), "poor": ln.Measure("poor", 0, 1)},
    )


def rows_of(sizes):
    """Return one row for each person, with ids."""
    rows = [
        (region, sex, 40 + 20 * (sex == "M"), number % 4 == 0)
        for (region, sex), count in sizes.items()
        for number in range(count)
    ]
    frame = pd.DataFrame(rows, columns=["region", "sex", "pay", "poor"])
    return frame.assign(poor=frame["poor"].astype(int), id=range(len(frame)))


def publish(seed, sizes=SIZES, **options):
    """Return a release of cells and of means by region, with suppressed small cells."""
    domain = domain_of()
    workload = (
        ln.marginals(domain, ways=1)
        + ln.queries(domain, region="identity", sex="identity")
        + ln.queries(domain, {"region": "identity"}, count="units", of_unit=["region"])
        + ln.mean_queries(domain, "pay", by=["region", "sex"])
    )
    privacy = ln.Privacy(ln.ZCDP(20), unit_column="id", max_rows=1)
    plan = ln.plan(workload, privacy)
    options = ln.Options(**({"below": BELOW} | options))
    return ln.release(plan, rows_of(sizes), seed=seed, options=options)


@pytest.fixture(scope="module")
def release():
    return publish(1)


@pytest.fixture(scope="module")
def earlier():
    """Return a release of another year, in which all groups of SIZES are large."""
    return publish(2, dict.fromkeys(SIZES, 200))


def is_left_out(comparison):
    """Return which groups are left out: all of their numbers, or none."""
    numbers = without_suppressed(comparison).numbers
    masks = [np.isnan(numbers[name]) for name in ("value", "against", "difference", "ratio")]
    masks += [np.isnan(numbers[name]) for name in ("difference_low", "difference_high")]
    assert all((mask == masks[0]).all() for mask in masks)
    return masks[0].tolist()


def test_published_masks_are_as_intended(release):
    """The tests below rely on these suppressed cells."""
    assert np.isnan(release.tables["region"].answer).tolist() == [False, False, False, True]
    assert np.isnan(release.tables["region x sex"].answer).tolist() == [
        [False, False], [False, False], [False, True], [True, True],
    ]  # fmt: skip
    assert not np.isnan(release.tables["sex"].answer).any()


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("west", True),
        (["west"], True),
        (["north", "west"], True),
        ({"coast": "sea"}, True),
        ("south", False),
        (["east", "south"], False),
        ({"coast": "land"}, False),
    ],
)
@pytest.mark.parametrize("quantity", [{}, {"count": "units"}])
def test_unions_of_suppressed_groups_are_left_out(release, quantity, selection, expected):
    others = {"east", "south"} if expected else {"north"}
    for against in sorted(others):
        comparison = ln.compare_groups(release, "region", selection, against, **quantity)
        assert is_left_out(comparison) == expected
        swapped = ln.compare_groups(release, "region", against, selection, **quantity)
        assert is_left_out(swapped) == expected


def test_unions_that_are_too_large_to_compare_are_left_out(release, monkeypatch):
    monkeypatch.setattr("leastnoise._pages._comparison_suppression._MOST_ENTRIES", 0)
    comparison = ln.compare_groups(release, "region", ["north", "east"], "south")
    assert is_left_out(comparison) is True


def test_each_of_several_groups_has_its_own_rule(release):
    comparison = ln.compare_groups(release, "region", ["north", "west"], "east", each=True)
    assert is_left_out(comparison) == [False, True]
    comparison = ln.compare_groups(release, "region", ["north", "east"], "west", each=True)
    assert is_left_out(comparison) == [True, True]


@pytest.mark.parametrize("quantity", [{"mean": "pay"}, {"sum": "pay"}, {}])
def test_groups_within_groups_are_left_out(release, quantity):
    comparison = ln.compare_groups(release, "sex", "F", "M", by=["region"], **quantity)
    assert is_left_out(comparison) == [False, False, True, True]


def test_shares_with_a_small_part_are_left_out(release):
    comparison = ln.compare_groups(release, "region", "east", "south", share={"sex": "M"})
    assert is_left_out(comparison) is True
    comparison = ln.compare_groups(release, "region", "east", "south", share={"sex": "F"})
    assert is_left_out(comparison) is False
    comparison = ln.compare_groups(release, "sex", "F", "M", share={"region": ["north", "west"]})
    assert is_left_out(comparison) is True


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"by": ["region"]}, [False, False, False, True]),
        ({"by": ["region"], "count": "units"}, [False, False, False, True]),
        ({"by": ["region", "sex"]}, [[False, False], [False, False], [False, True], [True, True]]),
        ({"by": ["region"], "where": {"sex": "M"}}, [False, False, True, True]),
        ({"by": ["region"], "where": {"sex": ["F", "M"]}}, [False, False, False, True]),
        ({"where": {"region": "south", "sex": "M"}}, True),
        ({"where": {"region": ["south", "east"], "sex": "M"}}, True),
        ({"where": {"region": "east"}}, False),
        ({"by": ["region"], "share": {"sex": "M"}}, [False, False, True, True]),
        ({"share": {"sex": "M"}, "where": {"region": "south"}}, True),
        ({"by": ["region"], "mean": "pay", "where": {"sex": "M"}}, [False, False, True, True]),
        ({"by": ["sex"], "mean": "pay", "where": {"region": "south"}}, [False, True]),
        ({"by": [{"region": ln.level("coast")}]}, [False, True]),
    ],
)
def test_two_releases_leave_out_what_either_suppresses(release, earlier, arguments, expected):
    for pair in ((release, earlier), (earlier, release)):
        assert is_left_out(ln.compare_releases(*pair, **arguments)) == expected
    none_small = ln.compare_releases(earlier, earlier, **arguments)
    assert not np.any(is_left_out(none_small))


def test_groups_in_no_table_are_left_out_below_the_limit():
    """No table has the cells of region and sex, but the measurements determine them."""
    domain = domain_of()
    plan = ln.plan(ln.marginals(domain, ways=1), ln.ZCDP(20), strategy="identity")
    release = ln.release(plan, rows_of(SIZES), seed=3, options=ln.Options(below=BELOW))
    comparison = ln.compare_groups(release, "sex", "F", "M", by=["region"])
    assert is_left_out(comparison) == [False, False, True, True]


def test_unreliable_numbers_of_surveys_are_left_out():
    """Numbers of a large CV are suppressed by a mask that no limit of rows states."""
    survey = {"design_effect": 1.5, "sample": 1329, "population": 132900, "suppress": True}
    releases = [publish(seed, below=None, survey=survey) for seed in (1, 2)]
    table = releases[0].tables["region x sex"]
    cells = np.isnan(table.answer)
    assert cells.any()
    assert not cells.all()
    by_cell = ln.compare_releases(*releases, by=["region", "sex"])
    other_cells = np.isnan(releases[1].tables["region x sex"].answer)
    assert np.array_equal(is_left_out(by_cell), cells | other_cells)
    for region, sex in itertools.product(REGIONS, ("F", "M")):
        selected = ln.compare_releases(*releases, where={"region": region, "sex": sex})
        position = (REGIONS.index(region), "FM".index(sex))
        assert is_left_out(selected) == bool(cells[position] or other_cells[position])
    regions = np.isnan(releases[0].tables["region"].answer)
    for first, second in itertools.combinations(range(len(REGIONS)), 2):
        rest = next(place for place in range(4) if place not in (first, second))
        union = ln.compare_groups(
            releases[0], "region", [REGIONS[first], REGIONS[second]], REGIONS[rest]
        )
        assert is_left_out(union) == bool(regions[[first, second, rest]].any())


def test_comparisons_without_rules_are_complete(earlier):
    release = publish(4, below=None)
    comparison = ln.compare_releases(release, earlier, by=["region", "sex"])
    assert not np.any(is_left_out(comparison))
