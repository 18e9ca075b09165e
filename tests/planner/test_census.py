"""The Census SF1 person tables: a real workload that needs attributes in detail here and in groups there."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, PureDP
from leastnoise._domain import Coded, Domain
from leastnoise._workload import QuerySet, Workload, identity, matrix, queries
from planner.proposals import proposal

_SCHEMA = Path(__file__).resolve().parents[3] / "shared" / "data" / "schemas" / "census_sf1_person.json"


def person_tables() -> Workload:
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    sizes = {entry["name"]: entry["size"] for entry in schema["attributes"]}
    domain = Domain({name: Coded(size) for name, size in sizes.items()})

    def choices(name: str, word: str) -> list[QuerySet | None]:
        if word in schema["groups"]:
            rows = np.zeros((len(schema["groups"][word]["cells"]), sizes[name]), dtype=int)
            for row, cells in zip(rows, schema["groups"][word]["cells"], strict=True):
                row[cells] = 1
            return [matrix(rows.tolist())]
        return ([identity()] if word.startswith("identity") else []) + ([None] if word.endswith("total") else [])

    products = []
    for words in itertools.chain.from_iterable(schema["tables"].values()):
        for chosen in itertools.product(*(choices(name, word) for name, word in zip(sizes, words, strict=True))):
            asked = {name: queried for name, queried in zip(sizes, chosen, strict=True) if queried is not None}
            products += queries(domain, **asked).products
    return Workload(domain, tuple(products))


# The best of OPT_kron, OPT_M and OPT_+, measured with hdmm.
@pytest.mark.skipif(not _SCHEMA.exists(), reason=f"needs {_SCHEMA.name} beside the checkout")
@pytest.mark.parametrize(
    ("budget", "power", "reached", "published"), [(PureDP(1), 1, 4.345, 5.163), (ZCDP("1/2"), 2, 2.066, 2.321)], ids=["pure", "gaussian"]
)
def test_the_error_is_far_below_the_best_published(budget: PureDP | ZCDP, power: int, reached: float, published: float) -> None:
    workload = person_tables()
    assert workload.rows == 4151
    error = math.sqrt(proposal("union", workload, budget).error / workload.rows)
    assert error < reached < published
