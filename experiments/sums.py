"""Reproduce the figures of Wu, Pujol, Kotsogiannis and Machanavajjhala.

The figures show sums of incomes up to many bounds in the paper's 15 configurations, and in ours.

    leastnoise experiments sums --data DIR [--out DIR] [--quick]

The configurations are five algorithms without a threshold, with a threshold from the sparse vector
technique, and with a threshold from the recursive mechanism; the same thresholds with the best
strategy; and our mechanism, which chooses the threshold by the error predicted from noisy counts of
the tail. Every configuration is private with the repairs in experiments/sums_mechanisms.py; the
noise comes from a seed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from experiments.common import Reals, Report, Row, standard_error, write_csv
from experiments.sums_figures import draw_algorithms, draw_answers, draw_comparison, draw_isotonic
from experiments.sums_mechanisms import (
    MAXIMUM,
    READINGS,
    TAIL_SHARE,
    Column,
    bucketed_answers,
    income,
    least_error_threshold,
    recursive_threshold,
    rows_for_threshold,
    single_queries,
    svt_threshold,
    tail_threshold,
    workload,
)
from experiments.sums_strategies import PrefixSums
from leastnoise._trusted.kernel import SeededEntropy

WORKLOADS = {"Q1": 1000, "Q2": 100, "Q3": 10}
EPSILONS = tuple(Fraction(text) for text in ("1/100", "3/100", "1/10", "3/10", "1"))
SHARES = (Fraction(1, 10), Fraction(1, 2))
PAPER = ("identity", "workload", "timm", "tamm")
OUR_THRESHOLDS = {"tail": tail_threshold, "least error": least_error_threshold}
_SMALLEST_DENOMINATOR = 100  # of the paper's relative error, in units of the answers
_SINGLE = 1_000  # approximate limit of SQM's searches in a configuration
_STEPS = 10**8  # approximate limit of the steps of SQM's searches
_MAX_BUCKETED = 256  # largest number of queries for buckets; beyond, planning is slow

# A key is (reading, epsilon, share of the threshold or None, algorithm, threshold).
Key = tuple[str, Fraction, Fraction | None, str, str]


def run(
    data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> dict[str, list[Row]]:
    """Carry out the experiment.

    Args:
        data: the folder with ``microdata/cps.csv``; None for generated incomes.
        out: the folder for tables and figures, created if it is missing.
        quick: few trials of 100 queries, in about half a minute.
        seed: seed of all noise.
        report: called with every line of progress.

    Returns:
        The rows of every table, by its name.
    """
    out.mkdir(parents=True, exist_ok=True)
    column = income(data, seed)
    trials = 3 if quick else 100
    names = ("Q2",) if quick else tuple(WORKLOADS)
    epsilons = EPSILONS[::4] if quick else EPSILONS
    thresholds = shared_thresholds(column, epsilons, trials, seed)
    rows: list[Row] = []
    queries: list[Row] = []
    for name in names:
        sums = workload(WORKLOADS[name])
        answers = trial_answers(column, sums, epsilons, trials, thresholds, seed)
        rows += summaries(name, column, sums, answers)
        queries += by_query(name, column, sums, answers)
        for line in findings([row for row in rows if row["workload"] == name]):
            report(f"{name}: {line}")
        write_csv(out / "configurations.csv", rows)
        write_csv(out / "queries.csv", queries)
    first = names[0]
    draw_answers([row for row in queries if row["workload"] == first], out / "figure-2")
    draw_algorithms([row for row in queries if row["workload"] == first], out / "figure-3")
    draw_isotonic([row for row in queries if row["workload"] == "Q2"], out / "figure-4")
    draw_comparison(rows, out / "comparison")
    report(f"Tables and figures are in {out}.")
    return {"configurations": rows, "queries": queries}


def shared_thresholds(
    column: Column, epsilons: Iterable[Fraction], trials: int, seed: int
) -> dict[tuple[Fraction, Fraction, str], list[int]]:
    """Choose the thresholds of each trial by the paper's two mechanisms.

    As in the paper, all algorithms of a trial share them.
    """
    entropy = SeededEntropy(seed)
    searches = {"svt": svt_threshold, "recursive": recursive_threshold}
    return {
        (epsilon, share, name): [search(column, epsilon * share, entropy) for _ in range(trials)]
        for epsilon in epsilons
        for share in SHARES
        for name, search in searches.items()
    }


# The use of a threshold: algorithm, budget of the answers, epsilon, share of the threshold, its
# kind, number of trials.
Job = tuple[str, Fraction, Fraction, Fraction | None, str, int]


def trial_answers(
    column: Column,
    sums: PrefixSums,
    epsilons: Sequence[Fraction],
    trials: int,
    thresholds: Mapping[tuple[Fraction, Fraction, str], list[int]],
    seed: int,
) -> dict[Key, Reals]:
    """Draw noisy answers of every configuration, shape (trials, m).

    SQM has fewer trials, because each of its queries searches for a threshold.
    """
    entropy = SeededEntropy(seed + 1)
    jobs = _jobs(column, sums, epsilons, trials, thresholds, entropy)
    parts_by_key: dict[Key, list[Reals]] = defaultdict(list)
    for threshold in sorted(jobs):
        for name in dict.fromkeys(job[0] for job in jobs[threshold]):
            rows, bins = rows_for_threshold(name, sums, threshold)
            matching = [job for job in jobs[threshold] if job[0] == name]
            for reading in READINGS:
                sums_by_bin = column.cut_sums(bins.edges, threshold, reading)
                for _, answer_epsilon, epsilon, share, kind, count in matching:
                    parts_by_key[reading, epsilon, share, name, kind].append(
                        rows.draw(sums_by_bin, answer_epsilon, count, entropy)
                    )
    answers = {key: np.concatenate(parts) for key, parts in parts_by_key.items()}
    for epsilon in epsilons:
        answers |= _single(column, sums, READINGS[0], epsilon, trials, SeededEntropy(seed + 2))
    if len(sums.last) <= _MAX_BUCKETED:
        entropy = SeededEntropy(seed + 3)
        for reading, epsilon in product(READINGS, epsilons):
            full_sums = column.cut_sums(sums.edges, MAXIMUM, reading)
            answers[reading, epsilon, None, "buckets", "none"] = bucketed_answers(
                full_sums, sums, epsilon, trials, entropy
            )
    return answers


def _jobs(
    column: Column,
    sums: PrefixSums,
    epsilons: Sequence[Fraction],
    trials: int,
    thresholds: Mapping[tuple[Fraction, Fraction, str], list[int]],
    entropy: SeededEntropy,
) -> dict[int, list[Job]]:
    """Group all measurements by threshold, so that each strategy is built once."""
    jobs: dict[int, list[Job]] = defaultdict(list)
    for epsilon in epsilons:
        for name in (*PAPER, "optimum"):
            jobs[MAXIMUM].append((name, epsilon, epsilon, None, "none", trials))
        for share, kind in ((share, kind) for share in SHARES for kind in ("svt", "recursive")):
            names = (*PAPER, "optimum") if (share, kind) == (SHARES[0], "svt") else PAPER
            for threshold, count in _counted(thresholds[epsilon, share, kind]):
                jobs[threshold] += [
                    (name, epsilon * (1 - share), epsilon, share, kind, count) for name in names
                ]
        for kind, choose in OUR_THRESHOLDS.items():
            for threshold, count in _counted(
                choose(column, sums, epsilon, entropy) for _ in range(trials)
            ):
                jobs[threshold].append(
                    ("optimum", epsilon * (1 - TAIL_SHARE), epsilon, TAIL_SHARE, kind, count)
                )
    return jobs


def _counted(thresholds: Iterable[int]) -> list[tuple[int, int]]:
    """Count how often each threshold occurs."""
    values, counts = np.unique(list(thresholds), return_counts=True)
    return [(int(value), int(count)) for value, count in zip(values, counts, strict=True)]


def _single(
    column: Column,
    sums: PrefixSums,
    reading: str,
    epsilon: Fraction,
    trials: int,
    entropy: SeededEntropy,
) -> dict[Key, Reals]:
    """Draw the answers of SQM for configurations that take at most minutes.

    Each query searches for a threshold with its part of the budget.
    """
    query_count = len(sums.last)
    answers = {}
    for share, kind in (
        (None, "none"),
        *((share, kind) for share in SHARES for kind in ("svt", "recursive")),
    ):
        count = trials
        if kind == "svt" and not (
            query_count <= 100 and share == SHARES[0] and epsilon == EPSILONS[0]
        ):
            count = max(2, min(trials, _SINGLE // query_count))
        if share is not None and kind == "recursive":
            # The search takes ln(MAXIMUM / START) / beta steps for each query.
            steps = query_count * 2.8 / (0.4 * float(epsilon * share) / query_count)
            count = min(trials, int(_STEPS // steps))
        if count:
            noisy_answers = [
                single_queries(column, sums, reading, epsilon, share, kind, entropy)[0]
                for _ in range(count)
            ]
            answers[reading, epsilon, share, "sqm", kind] = np.array(noisy_answers)
    return answers


def relative_errors(noisy: Reals, truth: Reals) -> Reals:
    """Return the paper's error, |answer - truth| / max(truth, 100)."""
    return np.abs(noisy - truth) / np.maximum(truth, _SMALLEST_DENOMINATOR)


def monotone(noisy: Reals) -> Reals:
    """Apply isotonic regression to each trial, over all answers as in the paper."""
    return np.array([isotonic_regression(answers).x for answers in noisy])


def summaries(
    name: str, column: Column, sums: PrefixSums, answers_by_key: Mapping[Key, Reals]
) -> list[Row]:
    """Return a row per configuration: mean relative error and its variation over trials."""
    rows = []
    for (reading, epsilon, share, algorithm, kind), noisy in answers_by_key.items():
        truth = column.answers(sums, reading).astype(float)
        for step, answers in (("none", noisy), ("isotonic", monotone(noisy))):
            errors = relative_errors(answers, truth).mean(axis=1)
            error_of_mean: float | str = ""
            if len(errors) > 1:
                error_of_mean = float(f"{standard_error(errors):.3g}")
            rows.append(
                {
                    "workload": name,
                    "reading": reading,
                    "epsilon": float(epsilon),
                    "threshold share": "" if share is None else float(share),
                    "algorithm": algorithm,
                    "threshold": kind,
                    "post-processing": step,
                    "trials": len(errors),
                    "mean relative error": float(f"{errors.mean():.5g}"),
                    "standard error": error_of_mean,
                    "5%": float(f"{np.percentile(errors, 5):.5g}"),
                    "95%": float(f"{np.percentile(errors, 95):.5g}"),
                    "rmse": float(f"{np.sqrt(np.mean((answers - truth) ** 2)):.5g}"),
                }
            )
    return rows


def by_query(
    name: str, column: Column, sums: PrefixSums, answers_by_key: Mapping[Key, Reals]
) -> list[Row]:
    """Return means and bands per query for the configurations of the figures.

    Epsilon is 0.01, values are of records, and the share is 0.1.
    """
    shown = [("identity", kind) for kind in ("none", "svt", "recursive")]
    shown += [(algorithm, "svt") for algorithm in ("workload", "timm", "tamm", "sqm", "optimum")]
    shown.append(("optimum", "tail"))
    truth = column.answers(sums, "records").astype(float)
    rows = []
    for algorithm, kind in shown:
        key: Key = ("records", EPSILONS[0], None if kind == "none" else SHARES[0], algorithm, kind)
        if key not in answers_by_key:
            continue
        for step, answers in (
            ("none", answers_by_key[key]),
            ("isotonic", monotone(answers_by_key[key])),
        ):
            errors = relative_errors(answers, truth)
            bands = [np.percentile(part, (5, 95), axis=0) for part in (answers, errors)]
            for query, edge in enumerate(sums.edges[sums.last].tolist()):
                numbers = (
                    truth[query],
                    answers[:, query].mean(),
                    *bands[0][:, query],
                    errors[:, query].mean(),
                    *bands[1][:, query],
                )
                titles = (
                    "truth",
                    "answer",
                    "answer 5%",
                    "answer 95%",
                    "error",
                    "error 5%",
                    "error 95%",
                )
                rows.append(
                    {
                        "workload": name,
                        "algorithm": algorithm,
                        "threshold": kind,
                        "post-processing": step,
                        "up to": edge,
                    }
                    | {
                        title: float(f"{number:.5g}")
                        for title, number in zip(titles, numbers, strict=True)
                    }
                )
    return rows


def picked(rows: Iterable[Row], **values: Any) -> Row | None:
    """Return the row with these values, or None."""
    names = {"share": "threshold share", "step": "post-processing"}
    for row in rows:
        if all(row[names.get(name, name)] == value for name, value in values.items()):
            return row
    return None


def findings(rows: Sequence[Row], reading: str = "records") -> list[str]:
    """Return the results of the comparison at every epsilon."""
    lines = []
    for epsilon in sorted({row["epsilon"] for row in rows}):
        common = {"reading": reading, "epsilon": epsilon, "step": "isotonic", "share": 0.1}
        our_row = picked(rows, algorithm="optimum", threshold="tail", **common)
        tamm_row = picked(rows, algorithm="tamm", threshold="svt", **common)
        if our_row and tamm_row:
            our_error = our_row["mean relative error"]
            tamm_error = tamm_row["mean relative error"]
            lines.append(
                f"epsilon = {epsilon:g}: ours {our_error:.4g}, TaMM with SVT {tamm_error:.4g}, "
                f"ratio {our_error / tamm_error:.2f}"
            )
    return lines
