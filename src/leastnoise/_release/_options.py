"""The options of a release besides its plan, and their checks.

Checked before anything is paid.

In the place of a table of all ranges that is too large to write, its cells and its prefix sums are
written, from which every range follows. After the payment nothing here may fail or take hours:
sizes are bounded from the plan alone, and iterations stop after a bounded number of rounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from leastnoise._domain import Domain
from leastnoise._error import LEVEL, checked_level
from leastnoise._plan import guard_share
from leastnoise._release._texts import LANGUAGES, Names, Texts, texts
from leastnoise._trusted.check import (
    Exact,
    InputError,
    exact_positive,
    one_of,
    quoted,
    refuse,
    whole,
)
from leastnoise._trusted.measurements import MOST_ROWS
from leastnoise._workload import Product, QuerySet, all_ranges, identity, parse_day, prefix

FORMATS = ("csv", "parquet", "xlsx", "sdmx")
"""Of the files with answers."""
USUAL = ("csv", "parquet")
SOMETIMES = ("answer_non_negative", "answer_nnls", "nnls_rmse", "answer_local")
"""Columns that not every table of a release has."""
_PUBLICATION = ("title", "source", "agency")
_SEARCHED = {"attribute", "dataset", "charge", "number", "ledger"}
MOST_WRITTEN = 10_000_000
"""Answers of one table that are written; public."""
_LEAST_STEP, _MOST_STEP = Fraction(1, 10**12), Fraction(10**18)  # of rounding
_MOST_TABLES, _MOST_ANSWERS = 200, 1_000_000  # of a workbook, or of SDMX messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a release besides its plan.

    All but the guard are post-processing, and cost nothing.

    The names are those of ``[output]`` in a spec, and ``guard`` of ``[plan]``; the manifest has
    them under ``options``.

    Args:
        level: of the intervals, above 0 and below 1.
        formats: of the files with answers: some of csv, parquet, xlsx (one Excel workbook, a sheet
            a table; the extra ``excel``) and sdmx (SDMX-CSV 2.0, a file a table); of the latter two
            at most 200 tables and a million answers.
        non_negative: also give the biased column ``answer_non_negative``, beside the unbiased one.
        integer: also give the biased column ``answer_integer`` of whole answers, made from the
            non-negative ones where they are there.
        nnls: also give the biased columns ``answer_nnls``, by non-negative least squares over all
            measurements with the total fixed, and ``nnls_rmse``, its simulated errors.
        local_non_negative: also give the biased column ``answer_local``, from the nearest tables
            without negative cells that agree.
        covariances: tables, by id or name, whose covariances are written too.
        round: publish answers as multiples of this, in rows or in the measure's own unit, with
            intervals half a step wider to either side. None: as they are. Of further answers it
            changes nothing: those are not published yet.
        below: publish no answer that is below this before it is rounded, but that it is. None: all
            are published.
        language: of the report: en or de.
        contact: whom readers of the report ask about the data, such as an address; empty for none.
        title: of the publication, in the report, its citation and SDMX; empty: made of what was
            asked.
        source: of the data, one line for readers, such as "Register of vehicles, 31 December 2025";
            empty for none.
        agency: who publishes, in the citation and as the agency of SDMX; empty for none.
        labels: by attribute, texts of its codes and of those of its levels, such as ``{"sex": {"1":
            "men", "2": "women"}}``: pages, charts and terminals show them in place of the codes,
            which stay in files. SDMX has both.
        statements: of SQL, each with a table of its own in the report and in files; what they ask
            is in the plan.
        today: the day that CURRENT_DATE means in these statements, such as "2026-01-31"; empty:
            none is stated, and CURRENT_DATE is refused.
        joined_on: the columns on which a `Joined` source is joined, that of the first table and
            that of the second, so that statements may write its LEFT JOIN; empty: JOIN is refused.
        guard: a share such as "1/100" of the whole budget, of which the plan has the rest (see
            `leastnoise.plan`): it pays for noisy counts of rows read and used before the plan is
            paid, and stops the release where with confidence fewer than half are used.
            None: there is none.
        rows: the public number of rows of the source, if there is one: the guard stops a release of
            which it counts with confidence fewer than half.
        searches: those that found categories of the domain, as `FoundCategories.named` gives them:
            the manifest names them beside the release's own payment. They must be of the same data
            set.

    Raises:
        InputError: something of the above cannot be used.

    >>> ln.Options(level=0.9, nnls=True, covariances=["sex"]).covariances
    ('sex',)
    """

    level: float = LEVEL
    formats: Sequence[str] = USUAL
    non_negative: bool = False
    integer: bool = False
    nnls: bool = False
    local_non_negative: bool = False
    covariances: Sequence[str] = ()
    language: str = "en"
    contact: str = ""
    title: str = ""
    source: str = ""
    agency: str = ""
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    statements: Sequence[str] = ()
    today: str = ""
    joined_on: Sequence[str] = ()
    guard: Exact | None = None
    rows: int | None = None
    searches: Sequence[Mapping[str, Any]] = ()
    round: Exact | None = None
    below: Exact | None = None

    def __post_init__(self) -> None:
        given = asdict(self)
        kept: dict[str, Any] = {
            "level": checked_level(self.level),
            "guard": guard_share(self.guard),
            "rows": None if self.rows is None else whole("rows", self.rows, 1, MOST_ROWS),
        }
        if (
            not isinstance(self.formats, (list, tuple))
            or not self.formats
            or any(item not in FORMATS for item in self.formats)
        ):
            raise refuse(
                "formats",
                self.formats,
                "a list of some of 'csv', 'parquet', 'xlsx' and 'sdmx', at least one of them",
            )
        for name in ("non_negative", "integer", "nnls", "local_non_negative"):
            if not isinstance(given[name], bool):
                raise refuse(name, given[name], "true or false")
        for name in ("covariances", "statements", "joined_on"):
            if not isinstance(given[name], (list, tuple)) or not all(
                isinstance(entry, str) and entry for entry in given[name]
            ):
                raise refuse(name, given[name], "a list of texts that are not empty")
        kept |= {
            name: tuple(dict.fromkeys(given[name]))
            for name in ("formats", "covariances", "statements")
        }
        kept["joined_on"] = tuple(given["joined_on"])
        one_of("language", self.language, LANGUAGES)
        parse_day(self.today or None)
        for name in ("contact", *_PUBLICATION):
            if not isinstance(given[name], str) or len(given[name].splitlines()) > 1:
                raise refuse(name, given[name], "a text of one line")
        along = self.labels.values() if isinstance(self.labels, Mapping) else [None]
        if not all(
            isinstance(each, Mapping)
            and all(isinstance(text, str) and text for text in chain(*each.items()))
            for each in along
        ):
            allowed = "a mapping from attributes to texts of their codes, such as {'sex': {'1': 'men', '2': 'women'}}"
            raise refuse("labels", self.labels, allowed)
        kept["labels"] = {name: dict(each) for name, each in self.labels.items()}
        listed = self.searches if isinstance(self.searches, (list, tuple)) else [None]
        if not all(isinstance(search, Mapping) and set(search) >= _SEARCHED for search in listed):
            raise refuse(
                "searches",
                self.searches,
                "a list of what FoundCategories.named() gives, of searches that were paid",
            )
        kept["searches"] = tuple(dict(search) for search in self.searches)
        kept |= {
            name: None if given[name] is None else _publishable(name, given[name])
            for name in ("round", "below")
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """The names of the chosen options that only some plans can give."""
        asked = {
            "nnls": self.nnls,
            "local_non_negative": self.local_non_negative,
            "covariances": bool(self.covariances),
        }
        return tuple(name for name, wanted in asked.items() if wanted)

    @property
    def some(self) -> tuple[str, ...]:
        """The names of the chosen columns that not every table has."""
        asked = (self.non_negative, self.nnls, self.nnls, self.local_non_negative)
        return tuple(name for name, wanted in zip(SOMETIMES, asked, strict=True) if wanted)

    @property
    def rounds(self) -> bool:
        """Whether answers are rounded or suppressed.

        Then tables no longer add up.
        """
        return self.round is not None or self.below is not None

    @property
    def biased(self) -> bool:
        """Whether there is any biased column."""
        return self.non_negative or self.integer or self.nnls or self.local_non_negative

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which the same options are made.

        Some that are not set are left out.

        >>> Options(**Options(guard="1/100").to_json()) == Options(guard="1/100")
        True
        """
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        exact = {name: values.pop(name) for name in ("guard", "round", "below")}
        given = {name: str(value) for name, value in exact.items() if value is not None}
        further = {
            name: values.pop(name)
            for name in (
                *_PUBLICATION,
                "labels",
                "statements",
                "today",
                "joined_on",
                "rows",
                "searches",
            )
        }
        return {**values, **given, **{name: value for name, value in further.items() if value}}


def _publishable(name: str, value: Exact) -> Fraction:
    """Read a step of rounding or a least answer, of a size that answers can have."""
    number = exact_positive(name, value)
    if not _LEAST_STEP <= number <= _MOST_STEP:
        raise refuse(name, value, "a number between 1e-12 and 1e18")
    return number


def labels_with_other(options: Options, domain: Domain) -> Names:
    """Return the texts of codes by attribute, with the words for nulls and other values in the language of the release."""
    lang = texts(options.language)
    words = {
        label: lang.say(key)
        for label, key in (
            ("other", "other"),
            ("(null)", "null_cell"),
            ("(outside)", "outside_cell"),
        )
    }
    kinds = {name: domain.kind(name) for name in domain.names}
    labels = {
        name: [label for label in kind.further_labels if words[label] != label]
        for name, kind in kinds.items()
    }
    others = {
        name: {label: words[label] for label in translated}
        for name, translated in labels.items()
        if translated
    }
    return {
        name: {**others.get(name, {}), **options.labels.get(name, {})}
        for name in {**others, **options.labels}
    }


def exact_rule(options: Options) -> tuple[Fraction, Fraction | None]:
    """Return the rounding step and the suppression bound.

    A step of 0 for none; a bound of None for none.
    """
    step = Fraction(0) if options.round is None else exact_positive("round", options.round)
    return step, None if options.below is None else exact_positive("below", options.below)


def rounding_words(options: Options, lang: Texts) -> str:
    """Describe rounding and suppression, and their effect on error bars."""
    step, least = exact_rule(options)
    parts = [lang.say("rounded", to=lang.plain(step), half=lang.plain(step / 2))] if step else []
    return " ".join(
        [*parts, *([] if least is None else [lang.say("left_out", below=lang.plain(least))])]
    )


def written(products: Sequence[Product]) -> tuple[Product, ...]:
    """Return the tables that are written.

    The cells of tables that are too large, and last their prefix sums.
    """
    cells = tuple(
        _instead(product, identity()) if is_large(product) else product for product in products
    )
    return cells + tuple(_instead(product, prefix()) for product in products if is_large(product))


def is_large(product: Product) -> bool:
    """Whether a table has too many answers to be written, and few enough cells."""
    return product.rows > MOST_WRITTEN >= _instead(product, identity()).rows


def is_part(question: Product, asked: Product) -> bool:
    """Whether every query of a table is one of another table."""
    pairs = zip(question.query_sets, asked.query_sets, strict=False)
    return (question.measure, question.attributes) == (asked.measure, asked.attributes) and all(
        queries == other or (other == all_ranges() and queries.form.intervals)
        for queries, other in pairs
    )


def _instead(product: Product, instead: QuerySet) -> Product:
    sets = tuple(instead if queries == all_ranges() else queries for queries in product.query_sets)
    return replace(product, query_sets=sets)


def check_formats(formats: Sequence[str], tables: Sequence[Product]) -> None:
    """Refuse formats that cannot hold a release."""
    for name in formats:
        if name == "xlsx":
            try:
                import xlsxwriter  # noqa: F401 - whether it is there
            except ImportError:
                raise InputError(
                    "Answers as xlsx need the extra 'excel': pip install 'leastnoise[excel]'."
                ) from None
        if name in ("xlsx", "sdmx"):
            advice, answers = (
                "Leave that format out, or ask for less.",
                sum(product.rows for product in tables),
            )
            if not len(tables) <= _MOST_TABLES:
                raise refuse(
                    f"a release in the format {name!r}",
                    f"{len(tables)} tables",
                    f"of at most {_MOST_TABLES} tables",
                    advice,
                )
            if not answers <= _MOST_ANSWERS:
                raise refuse(
                    f"a release in the format {name!r}",
                    f"{answers} answers",
                    f"of at most {_MOST_ANSWERS} answers",
                    advice,
                )


def table_position(products: Sequence[Product], key: str) -> int:
    """The position of a table, by id or by a name that only one table has."""
    if (
        key[:1] == "q"
        and key[1:].isdecimal()
        and key == f"q{int(key[1:])}"
        and 1 <= int(key[1:]) <= len(products)
    ):
        return int(key[1:]) - 1
    named = [position for position, product in enumerate(products) if product.name == key]
    if len(named) == 1:
        return named[0]
    if named:
        listed = ", ".join(f"q{position + 1}" for position in named[:5]) + ", ..." * (
            len(named) > 5
        )
        raise InputError(f"Several tables are named {key!r}; take one by its id: {listed}.")
    some = ", ".join(
        f"q{number} ({product.name})" for number, product in enumerate(products[:5], 1)
    ) + ", ..." * (len(products) > 5)
    raise InputError(
        f"A table must be called by its id or name; got {quoted(key)}. This release has {some}."
    )
