"""Random tables, domains and SQL statements, each with an equivalent one for DuckDB.

The text for DuckDB differs from the statement only by these lines of docs/coming-from-sql.md:

- "with a value that `clip` moves: as the nearest value of the domain": columns with
  ``outside="clip"`` and measures are clipped in DuckDB's table.
- "with another value outside the domain, where results differ: left out [of a condition], or in
  the group `other` or `(outside)`": where `Statement` says so, these rows are filtered out, or have
  a group of their own.
- "The group NULL is published if the domain counts nulls": else DuckDB's is not looked for.
- "Its counts and sums are 0, where SQL has no row, or NULL; its mean can be any number".
- "If nulls and other values share the cell `other`, `GROUP BY` of the column shows both as the
  group `other`".
- "A level is known only of the values in the domain".
"""

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

import leastnoise as ln

CHANNELS = ["web", "app", "shop"]
STRAY_CHANNELS = ["fax", "Web", "none", "other"]
REGIONS = {"Kiel": "north", "Mainz": "south", "Trier": "south"}
START = dt.date(2024, 1, 20)
END = dt.date(2024, 3, 4)


@dataclass(frozen=True)
class Setting:
    """A table, its domain, and the table as DuckDB reads it."""

    domain: ln.Domain
    rows: pd.DataFrame
    read: pd.DataFrame
    unit: str | None
    attributes: tuple[str, ...]  # that statements may use; few, so that plans are made soon


def random_setting(rng, attributes):
    """Return a random table of 20 to 80 rows, and a domain with random policies.

    Args:
        rng: the source of randomness.
        attributes: the number of attributes that statements use.
    """

    def policies(*, ordered=False):
        outside = ["drop", "drop", "other", "cell", *(["clip"] * 2 if ordered else [])]
        return {
            "null": rng.choice(["drop", "drop", "other", "cell"]),
            "outside": rng.choice(outside),
        }

    chan = policies()
    city = policies()
    chan["null"] = "cell" if chan["null"] == "other" else chan["null"]
    chan["outside"] = "cell" if chan["outside"] == "other" else chan["outside"]
    listed = CHANNELS
    if rng.random() < 0.5:
        chan = policies()
    else:
        listed = [*CHANNELS, "other"]  # a category that is called as the added cell
    domain = ln.Domain(
        chan=ln.Categories(listed, **chan),
        city=ln.Categories(list(REGIONS), levels={"region": REGIONS}, **city),
        refund=ln.Categories([True, False], null=rng.choice(["drop", "other", "cell"])),
        flag=ln.Integers(0, 1, **policies()),
        age=ln.Integers(0, 12, **policies(ordered=True)),
        day=ln.Dates(START, END, by="day", **policies(ordered=True)),
        weight=ln.Bins(0, 100, 5, **policies(ordered=True)),
        disc=ln.Decimals(0, "0.4", "0.1", **policies(ordered=True)),
        measures={"amount": ln.Measure("amount", -20, 100), "pay": ln.Measure("pay", 0, 50)},
    )
    rows = _random_rows(rng, rng.randint(20, 80))
    unit = "customer" if rng.random() < 0.3 else None
    used = tuple(rng.sample([*_ATOMS], attributes))
    return Setting(domain, rows, _as_read(domain, rows), unit, used)


def _random_rows(rng, count):
    null_share = rng.choice([0, 0.1, 0.4])
    stray_share = rng.choice([0, 0.1, 0.3])

    def column(draw, stray):
        values = []
        for _ in range(count):
            is_null = rng.random() < null_share
            is_stray = rng.random() < stray_share
            if is_null:
                values.append(None)
            elif is_stray:
                values.append(stray())
            else:
                values.append(draw())
        return values

    frame = pd.DataFrame(
        {
            "chan": column(lambda: rng.choice(CHANNELS), lambda: rng.choice(STRAY_CHANNELS)),
            "city": column(lambda: rng.choice([*REGIONS]), lambda: rng.choice(["Rom", "kiel"])),
            "refund": column(lambda: rng.random() < 0.5, lambda: True),
            "flag": column(lambda: rng.randint(0, 1), lambda: 2),
            "age": column(lambda: rng.randint(0, 12), lambda: rng.choice([-3, 13, 40])),
            "day": column(
                lambda: START + dt.timedelta(rng.randint(0, (END - START).days)),
                lambda: rng.choice([START - dt.timedelta(20), END + dt.timedelta(9)]),
            ),
            "weight": column(lambda: rng.randint(0, 400) / 4, lambda: rng.choice([-5.0, 130.0])),
            "disc": column(lambda: rng.randint(0, 4) / 10, lambda: rng.choice([-0.1, 0.7])),
            "amount": column(lambda: rng.randint(-20, 100), lambda: rng.choice([-90, 500])),
            "pay": column(lambda: rng.randint(0, 50), lambda: 70),
            "customer": [rng.randint(1, 12) for _ in range(count)],
        }
    )
    for name in ("flag", "age", "amount", "pay"):
        frame[name] = frame[name].astype("Int64")
    frame["refund"] = frame["refund"].astype("boolean")
    return frame


def _as_read(domain, rows):
    """Return the table as the domain reads it: clipped values, levels, and what is outside."""
    rows_as_read = rows.copy()
    bounds = {"flag": (0, 1), "age": (0, 12), "weight": (0, 100), "disc": (0, 0.4)}
    is_listed: dict[str, Callable[[object], bool]] = {
        "chan": lambda value: value in domain.kind("chan").regular_labels,
        "city": lambda value: value in REGIONS,
        "refund": lambda _: True,
        "day": lambda value: START <= value <= END,
        **{
            name: (lambda value, low=low, high=high: low <= value <= high)
            for name, (low, high) in bounds.items()
        },
    }
    for name, is_inside in is_listed.items():
        if domain.kind(name).outside == "clip":
            low, high = (START, END) if name == "day" else bounds[name]
            clipped = [
                value if pd.isna(value) else min(max(value, low), high) for value in rows[name]
            ]
            rows_as_read[name] = pd.Series(clipped, dtype=rows[name].dtype)
        rows_as_read[f"{name}_out"] = [
            not pd.isna(value) and not is_inside(value) for value in rows_as_read[name]
        ]
    rows_as_read["region"] = [REGIONS.get(value) for value in rows["city"]]
    rows_as_read["region_out"] = rows_as_read["city_out"]
    for name, (low, high) in {"amount": (-20, 100), "pay": (0, 50)}.items():
        rows_as_read[name] = rows[name].clip(low, high)
    rows_as_read["day"] = pd.to_datetime(rows_as_read["day"])
    return rows_as_read


# --- conditions -----------------------------------------------------------------------------------


def random_term(rng, attributes):
    """Return a random condition on one attribute."""
    return _condition(rng, rng.choice(attributes))


def _condition(rng, name, depth=0):
    choice = rng.random() if depth < 2 else 0
    if choice < 0.6:
        return rng.choice(_ATOMS[name])(rng)
    inner = _condition(rng, name, depth + 1)
    if choice < 0.7:
        return f"NOT ({inner})"
    if choice < 0.78:
        return f"({inner}) OR ({_condition(rng, name, depth + 1)})"
    if choice < 0.84:
        return f"({inner}) AND ({_condition(rng, name, depth + 1)})"
    if choice < 0.93:
        truth = rng.choice(["TRUE", "FALSE", "NOT TRUE", "NOT FALSE", "NULL", "NOT NULL"])
        return f"({inner}) IS {truth}"
    if choice < 0.97:
        return f"COALESCE({inner}, {rng.choice(['TRUE', 'FALSE'])})"
    return f"CASE WHEN {inner} THEN {rng.choice(['TRUE', 'NULL'])} ELSE FALSE END"


def _compared(column, literal, *, ordered):
    """Return makers of comparisons of a column with literals."""
    comparisons = ["=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    comparisons += ["<", "<=", ">", ">="] if ordered else []

    def compare(rng):
        return f"{column} {rng.choice(comparisons)} {literal(rng)}"

    def in_list(rng):
        values = [literal(rng) for _ in range(rng.randint(1, 3))]
        values += ["NULL"] if rng.random() < 0.15 else []
        return f"{column} {rng.choice(['', 'NOT '])}IN ({', '.join(values)})"

    def between(rng):
        ends = sorted([literal(rng), literal(rng)], key=lambda text: (len(text), text))
        return f"{column} {rng.choice(['', 'NOT '])}BETWEEN {ends[0]} AND {ends[1]}"

    def is_null(rng):
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"

    def coalesced(rng):
        return f"COALESCE({column}, {literal(rng)}) {rng.choice(comparisons)} {literal(rng)}"

    def null_if(rng):
        return f"NULLIF({column}, {literal(rng)}) IS NULL"

    def in_case(rng):
        return f"CASE {column} WHEN {literal(rng)} THEN TRUE ELSE FALSE END"

    makers = [compare, compare, in_list, is_null, coalesced, null_if, in_case]
    return [*makers, between] if ordered else makers


def _text_literal(rng):
    return f"'{rng.choice([*CHANNELS, *CHANNELS, *STRAY_CHANNELS])}'"


def _date_literal(rng):
    day = START + dt.timedelta(rng.randint(-8, 52))
    return rng.choice([f"'{day}'", f"DATE '{day}'", f"CAST('{day}' AS DATE)"])


_ATOMS: dict[str, list[Callable[[random.Random], str]]] = {
    "chan": [
        *_compared("chan", _text_literal, ordered=False),
        *_compared("chan", _text_literal, ordered=True),
        lambda rng: f"chan {rng.choice(['', 'NOT '])}LIKE '{rng.choice(['w%', '%a%', '_a_'])}'",
        lambda rng: f"upper(chan) = '{rng.choice(['WEB', 'APP'])}'",
        lambda rng: f"length(chan) > {rng.randint(2, 4)}",
        lambda rng: f"starts_with(chan, '{rng.choice('wao')}')",
    ],
    "city": [
        *_compared("city", lambda rng: f"'{rng.choice([*REGIONS, 'Rom'])}'", ordered=False),
        *_compared("region", lambda rng: f"'{rng.choice(['north', 'south'])}'", ordered=False),
    ],
    "refund": [
        lambda _: "refund",
        lambda _: "NOT refund",
        lambda rng: f"refund {rng.choice(['=', '<>'])} {rng.choice(['TRUE', 'FALSE'])}",
        lambda rng: f"refund IS {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'NULL'])}",
        lambda rng: f"COALESCE(refund, {rng.choice(['TRUE', 'FALSE'])})",
        lambda _: "refund IS DISTINCT FROM TRUE",
    ],
    "flag": [
        lambda _: "flag",
        *_compared("flag", lambda rng: str(rng.randint(0, 2)), ordered=True),
    ],
    "age": [
        *_compared("age", lambda rng: str(rng.randint(-4, 15)), ordered=True),
        lambda rng: f"age % {rng.randint(2, 4)} = 0",
        lambda rng: f"age + 1 > {rng.randint(0, 12)}",
        lambda rng: f"floor(age / 4) = {rng.randint(0, 3)}",
    ],
    "day": [
        *_compared("day", _date_literal, ordered=True),
        lambda rng: f"day >= DATE '2024-02-10' - INTERVAL {rng.randint(1, 40)} DAY",
        lambda rng: f"EXTRACT(month FROM day) = {rng.randint(1, 5)}",
        lambda _: "year(day) = 2024",
    ],
    "weight": _compared("weight", lambda rng: str(20 * rng.randint(0, 5)), ordered=True),
    "disc": _compared("disc", lambda rng: f"0.{rng.randint(0, 5)}", ordered=True),
}


# --- groups and answers ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """A column of groups: its name, its attribute, and its expression."""

    alias: str
    attribute: str
    expression: str


@dataclass(frozen=True)
class Answer:
    """A column of answers: its name, its aggregate, and a FILTER."""

    alias: str
    aggregate: str
    terms: tuple[str, ...] = ()
    kind: str = "additive"


@dataclass(frozen=True)
class Written:
    """A random statement in parts."""

    groups: tuple[Group, ...]
    answers: tuple[Answer, ...]
    where: tuple[str, ...] = ()
    grouping: str = "plain"

    @property
    def text(self):
        """Return the statement."""
        groups = [
            group.expression
            if group.expression == group.alias
            else f"{group.expression} AS {group.alias}"
            for group in self.groups
        ]
        answers = [
            f"{answer.aggregate}{_filter(answer.terms)} AS {answer.alias}"
            for answer in self.answers
        ]
        return f"SELECT {', '.join([*groups, *answers])} FROM sales{_where(self.where)}" + (
            self._group_by([group.alias for group in self.groups])
        )

    def _group_by(self, names):
        listed = ", ".join(names)
        if not names:
            return ""
        if self.grouping == "numbers":
            return " GROUP BY " + ", ".join(str(number + 1) for number in range(len(names)))
        if self.grouping == "all":
            return " GROUP BY ALL"
        if self.grouping in ("ROLLUP", "CUBE"):
            return f" GROUP BY {self.grouping} ({listed})"
        if self.grouping == "sets":
            sets = ", ".join(f"({name})" for name in names)
            return f" GROUP BY GROUPING SETS ({sets}, ())"
        return f" GROUP BY {listed}"

    def reference(self, undecided):
        """Return the statement for DuckDB, in which undecided rows are left out.

        Rows outside the domain are in a group ``__outside__`` where a group is undecided.
        """
        groups = []
        for group in self.groups:
            text = f"CAST({group.expression} AS VARCHAR)"
            if group.alias in undecided.groups:
                is_apart = f"{group.attribute}_out"
                if group.alias in undecided.shared:
                    is_apart += f" OR {group.attribute} IS NULL"
                text = f"CASE WHEN {is_apart} THEN '__outside__' ELSE {text} END"
            groups.append(text)
        answers = []
        for answer in self.answers:
            terms = [*answer.terms, *_inside(undecided.answers.get(answer.alias, ()))]
            answers.append(f"{answer.aggregate}{_filter(terms)}")
        absent = [f"GROUPING({text})" for text in groups]
        where = [*self.where, *_inside(undecided.where)]
        columns = ", ".join([*groups, *answers, *absent])
        by = f" GROUP BY {_reference_grouping(self.grouping, groups)}" if groups else ""
        return f"SELECT {columns} FROM sales{_where(where)}{by}"


@dataclass(frozen=True)
class Undecided:
    """Where the rows with a value outside the domain are left out: attributes by clause."""

    where: frozenset[str] = frozenset()
    answers: dict[str, frozenset[str]] = field(default_factory=dict)
    groups: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()  # groups in whose cell nulls are counted, too


def _reference_grouping(grouping, groups):
    listed = ", ".join(groups)
    if grouping in ("ROLLUP", "CUBE"):
        return f"{grouping} ({listed})"
    if grouping == "sets":
        return f"GROUPING SETS ({', '.join(f'({text})' for text in groups)}, ())"
    return listed


def _inside(names):
    return [f"NOT {name}_out" for name in sorted(names)]


def _where(terms):
    return f" WHERE {' AND '.join(f'({term})' for term in terms)}" if terms else ""


def _filter(terms):
    if not terms:
        return ""
    return f" FILTER (WHERE {' AND '.join(f'({term})' for term in terms)})"


def random_group(rng, name):
    """Return a random column of groups of an attribute."""
    choice = rng.random()
    if choice < 0.3:
        term = _condition(rng, name)
        second_case = f" WHEN {_condition(rng, name)} THEN 'y'" if rng.random() < 0.4 else ""
        else_part = rng.choice(["", " ELSE 'z'", " ELSE 'x'", " ELSE NULL"])
        return Group(f"g_{name}", name, f"CASE WHEN {term} THEN 'x'{second_case}{else_part} END")
    if choice < 0.4:
        return Group(f"g_{name}", name, f"({_condition(rng, name)})")
    return Group(f"g_{name}", name, rng.choice(_GROUPED[name])(rng))


_GROUPED: dict[str, list[Callable[[random.Random], str]]] = {
    "chan": [
        lambda _: "chan",
        lambda rng: f"COALESCE(chan, '{rng.choice(['none', 'web', 'nothing'])}')",
        lambda _: "upper(chan)",
        lambda _: "substring(chan, 1, 1)",
        lambda _: "NULLIF(chan, 'web')",
        lambda _: "CASE chan WHEN 'web' THEN 'w' WHEN 'app' THEN 'a' ELSE chan END",
    ],
    "city": [lambda _: "city", lambda _: "region", lambda _: "COALESCE(region, 'nowhere')"],
    "refund": [lambda _: "refund", lambda _: "NOT refund", lambda _: "COALESCE(refund, FALSE)"],
    "flag": [lambda _: "flag", lambda _: "COALESCE(flag, 7)", lambda _: "flag = 1"],
    "age": [
        lambda _: "age",
        lambda _: "floor(age / 5) * 5",
        lambda _: "COALESCE(age, 5)",
        lambda _: "age >= 6",
    ],
    "day": [
        lambda _: "day",
        lambda _: "date_trunc('month', day)",
        lambda _: "EXTRACT(month FROM day)",
        lambda _: "day < '2024-02-15'",
    ],
    "weight": [lambda _: "weight < 40", lambda _: "COALESCE(weight, 0) < 40"],
    "disc": [lambda _: "disc", lambda _: "disc > 0.15"],
}


def random_answer(rng, alias, setting):
    """Return a random column of answers."""
    terms = tuple(
        random_term(rng, setting.attributes) for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))
    )
    term = random_term(rng, setting.attributes)
    columns = [name for name in ("chan", "age") if name in setting.attributes]
    columns += ["region"] if "city" in setting.attributes else []
    value = rng.choice(["1", "amount", "pay"])
    maker = rng.choice(
        [
            *["COUNT(*)", "COUNT(*)", "COUNT(1)", "SUM(1)", "COUNT(amount)", "SUM(amount)"],
            *["AVG(amount)", "AVG(pay)", "SUM(pay)", *(f"COUNT({name})" for name in columns)],
            *["SUM(pay * amount)", f"COUNT_IF({term})", f"SUM(CASE WHEN {term} THEN 0 ELSE 1 END)"],
            f"SUM(CASE WHEN {term} THEN {value} ELSE 0 END)",
            f"SUM(CASE WHEN {term} THEN 0 ELSE {value} END)",
            f"COUNT(CASE WHEN {term} THEN {rng.choice(['1', 'amount', *columns])} END)",
            f"COUNT(CASE WHEN {term} THEN 1 ELSE 0 END)",
            f"SUM(CASE WHEN {term} THEN 1 WHEN {term} THEN 0 ELSE 1 END)",
            f"AVG(CASE WHEN {term} THEN amount END)",
            f"SUM(CAST({term} AS INT))",
            *["COVAR_POP(amount, pay)", "COVAR_SAMP(pay, 3 - 2 * amount)", "CORR(pay / 2, amount)"],
            *["REGR_SLOPE(amount, -pay)", "REGR_INTERCEPT(pay, amount)", "REGR_R2(amount, pay)"],
            "REGR_COUNT(pay, amount)",
            *([f"COUNT(DISTINCT {setting.unit})"] * 3 if setting.unit else []),
        ]
    )
    return Answer(alias, maker, terms)


def random_statement(rng, setting):
    """Return a random statement."""
    attributes = setting.attributes
    groups = tuple(
        random_group(rng, name) for name in rng.sample(attributes, rng.choice([0, 1, 1, 1, 2, 2]))
    )
    where = tuple(random_term(rng, attributes) for _ in range(rng.choice([0, 0, 1, 1, 2])))
    if where and rng.random() < 0.1:
        where = (f"NOT (({where[0]}) OR ({random_term(rng, attributes)}))",)
    answers = tuple(
        random_answer(rng, f"a{number}", setting) for number in range(1, rng.randint(2, 4))
    )
    forms = ["plain", "plain", "numbers", "all", "ROLLUP", "CUBE", "sets"]
    return Written(groups, answers, where, rng.choice(forms))
