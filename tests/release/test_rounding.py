"""Rounding and suppression: what is said of every cell stays right as often as the level says, and is what was done."""

import csv
import math
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._check import InputError
from leastnoise._cli._main import program
from leastnoise._release import rounded

COUNTS = np.array([0, 3, 9, 12, 40, 200])


@pytest.fixture(scope="module")
def plan():
    domain = ln.Domain(place=ln.Coded(6), measures={"pay": ln.Measure("pay", 0, 10)})
    asked = ln.queries(domain, place="identity", weight=3) + ln.queries(domain, place="identity", sum="pay")
    return ln.plan(asked, ln.PureDP("1/2"), strategy="identity")


def release(plan, seed, **more):
    rows = pd.DataFrame({"place": np.repeat(np.arange(6), COUNTS), "pay": 4})
    return ln.release(plan, rows, seed=seed, **more)


def test_answers_are_multiples_and_margins_grow_by_half_a_step(plan):
    table = release(plan, 1).tables[0]
    found = table.rounded(5)
    assert (found.answer % 5 == 0).all()
    assert np.abs(found.answer - table.answer).max() <= 2.5
    assert found.margin == pytest.approx((table.high - table.answer) + 2.5)
    assert found.low == pytest.approx(found.answer - found.margin)
    assert found.high == pytest.approx(found.answer + found.margin)
    assert found.std_error == pytest.approx(table.noise_std + 2.5)


def test_small_answers_are_left_out_and_bounded(plan):
    table = release(plan, 2).tables[0]
    found = table.rounded(5, below=20)
    gone = table.answer < 20
    assert gone.any()
    assert not gone.all()
    assert np.isnan(found.answer[gone]).all()
    assert np.isnan(found.low[gone]).all()
    assert found.high[gone] == pytest.approx(20 + (table.high - table.answer)[gone])
    assert not np.isnan(found.answer[~gone]).any()
    assert f"{gone.sum()} of 6 answers are below 20 and left out" in found.words()


@pytest.mark.parametrize(("to", "below"), [(5, None), (5, 10), (50, 10)])
def test_what_is_said_is_right_as_often_as_the_level_says(plan, to, below):
    # the same plan with many seeds; a statement about a cell is wrong where the truth lies outside of what is said
    wrong, said = np.zeros(6), 150
    first = release(plan, 0)
    noise = np.random.default_rng(5).laplace(scale=float(plan.measured().blocks[0].scale), size=(said, 6))
    for draw in noise:
        table = first.tables[0]
        answer = COUNTS + np.rint(draw)
        margin = table.high - table.answer
        shifted = rounded(_moved(table, answer, margin), to, below)
        over = shifted.high < COUNTS
        wrong += over | np.nan_to_num(shifted.low > COUNTS)
    # five standard errors above 5%
    assert (wrong / said).max() < 0.05 + 5 * math.sqrt(0.05 * 0.95 / said)


def _moved(table, answer, margin):
    from dataclasses import replace

    return replace(table, answer=answer.astype(float), low=answer - margin, high=answer + margin)


def test_a_sum_is_rounded_in_its_own_unit(plan):
    found = release(plan, 3).tables[1].rounded("0.5")
    assert (found.answer * 2 == np.rint(found.answer * 2)).all()
    assert list(found.frame().columns) == ["query", "place", "answer", "std_error", "margin", "low", "high"]


@pytest.mark.parametrize(("to", "below"), [(0, None), (-5, None), (5, 0), (float("nan"), None)])
def test_bad_steps_are_refused(plan, to, below):
    with pytest.raises(InputError, match=r"rounded to|left out"):
        release(plan, 4).tables[0].rounded(to, below=below)


def test_the_command_writes_every_table(plan, tmp_path):
    made = release(plan, 5, out=tmp_path / "out")
    asked = ["round", str(tmp_path / "out"), "--to", "5", "--below", "20", "--out", str(tmp_path / "rounded")]
    done = CliRunner().invoke(program, asked)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "rounded").iterdir()) == ["README.md", "q1-place.csv", "q2-sum-of-pay-by-place.csv"]
    with (tmp_path / "rounded" / "q1-place.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["answer"] == "" for row in rows] == (made.tables[0].answer < 20).tolist()
    text = (tmp_path / "rounded" / "README.md").read_text()
    assert "NOT PRIVATE" in text
    assert len(re.findall("adds at most 2.5 to every margin", text)) == 2
    assert "must not exist yet" in str(CliRunner().invoke(program, asked).exception)
