"""The message when no strategy can be used begins with what the user can change."""

import pytest

import leastnoise as ln
from leastnoise._trusted.check import InputError


def reasons(workload, budget, **options):
    """Return the message of a plan that no strategy can make."""
    with pytest.raises(InputError) as error:
        ln.plan(workload, budget, **options)
    return str(error.value)


def test_no_strategy_message_leads_with_decisive_reason():
    domain = ln.Domain(k=["a", "b"], h=ln.Integers(0, 2))
    text = reasons(ln.marginals(domain, ways=2), ln.PureDP(1000))
    decisive, others = text.split(" Made for other workloads or other noise: ")
    assert decisive.startswith("No strategy can be used for this workload. identity, ")
    assert "The budget is so large" in decisive
    assert "measured by contrasts" not in text
    assert {"residual", "hierarchy"} <= set(others.rstrip(".").split(", "))
    assert not {"identity", "workload"} & set(others.rstrip(".").split(", "))


def test_no_strategy_message_of_one_strategy_says_why():
    domain = ln.Domain(k=["a", "b"], h=ln.Integers(0, 2))
    text = reasons(ln.marginals(domain, ways=2), ln.PureDP(1), strategy="hierarchy")
    assert "hierarchy: the workload has only cells along every attribute" in text
    assert "Made for other" not in text
