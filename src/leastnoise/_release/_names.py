"""What tables and statistics are called on a page, in its language; in files and commands they have one name in every language."""

from dataclasses import replace

from leastnoise._release._texts import Texts
from leastnoise._workload import Product, Statistic


def table_words(product: Product, said: Texts) -> str:
    """The name of a table."""
    table = replace(product, measure=None).name if product.attributes else said.say("name_total")
    if product.measure is None:
        return table
    made = said.say("name_sum", measure=product.measure) if product.of_values else _counted(product, said, "name")
    return said.say("name_by", name=made, groups=table) if product.attributes else made


def measured_words(product: Product, said: Texts) -> str:
    """What a table counts or sums."""
    return str(product.measure) if product.of_values else _counted(product, said, "unit")


def _counted(product: Product, said: Texts, key: str) -> str:
    """What a table counts: rows, units, or values of a measure."""
    if product.values_of is not None:
        return said.say(f"{key}_values", measure=product.values_of)
    return said.say("name_units" if product.of_units else "unit_rows")


def statistic_words(statistic: Statistic, said: Texts) -> str:
    """The name of a mean, of quantiles or of a distribution function."""
    made = said.say(f"name_{statistic.kind}", of=statistic.of)
    return said.say("name_by", name=made, groups=statistic.groups_name) if statistic.by else made
