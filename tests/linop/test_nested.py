"""What blocks and their sums must be."""

import pytest

from leastnoise._check import InputError
from leastnoise._linop import Contrasts, Identity, Nested, Operator, Prefix, Total


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((Identity(2), Identity(2), Identity(1)), "two or more, the last of them not wider than the others; got '1, of 2 cells"),
        ((Identity(2), Identity(3), Total(2)), "not wider than the others"),
        ((Identity(2), Identity(2), Contrasts(2)), "above must be another operator than contrasts"),
        ((Nested(Identity(2), Identity(2), Total(2)), Identity(2), Total(2)), "inner must be another operator than"),
    ],
)
def test_other_blocks_are_refused(parts: tuple[Operator, Operator, Operator], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Nested(*parts)


def test_sizes_and_rows_follow_from_the_parts() -> None:
    made = Nested(Prefix(4), Prefix(3), Total(3))
    assert (made.size, made.rows, made.before) == (11, 12, 8)
