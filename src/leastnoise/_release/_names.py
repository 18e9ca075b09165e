"""What tables and statistics are called on a page, in its language; in files and commands they have one name in every language."""

from dataclasses import replace

from leastnoise._release._texts import Texts
from leastnoise._workload import Product, Statistic


def table_words(product: Product, said: Texts) -> str:
    """The name of a table.

    Args:
        product: its queries.
        said: the catalogue.

    >>> domain = Domain(sex=["F", "M"], measures={"pay": Measure("pay", 0, 9)})
    >>> [table_words(one, texts("en")) for one in queries(domain, sex="identity", sum="pay") + queries(domain)]
    ['sum of pay by sex', 'total']
    """
    table = replace(product, measure=None).name if product.attributes else said.say("name_total")
    if product.measure is None:
        return table
    made = said.say("name_sum", measure=product.measure)
    return said.say("name_by", name=made, groups=table) if product.attributes else made


def statistic_words(statistic: Statistic, said: Texts) -> str:
    """The name of a mean, of quantiles or of a distribution function.

    Args:
        statistic: what was asked for.
        said: the catalogue.

    >>> (asked,) = ln.cdf_queries(Domain(sex=["F", "M"], age=Integers(0, 9)), "age", by=["sex"]).statistics
    >>> statistic_words(asked, texts("de"))
    'Verteilung von age nach sex'
    """
    made = said.say(f"name_{statistic.kind}", of=statistic.of)
    return said.say("name_by", name=made, groups=" x ".join(statistic.by)) if statistic.by else made
