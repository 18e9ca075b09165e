"""The options of a release in addition to its plan, and their checks.

Options are checked before the plan is paid. After the payment no option may fail or take hours:
sizes depend only on the plan, and iterations stop after a bounded number of rounds.

A table of all ranges may be too large to write. In that case, its cells and its prefix sums are
written. Every range can be computed from these numbers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from leastnoise._domain import (
    Bins,
    CompleteCount,
    Domain,
    Edges,
    Kind,
    UnitCount,
    ValueCount,
    Weighted,
)
from leastnoise._error import LEVEL, checked_level
from leastnoise._plan import checked_guard_share
from leastnoise._release._json_records import read_record, write_record
from leastnoise._release._receipt import SearchFacts
from leastnoise._release._sdmx_mapping import check_sdmx_mapping, read_sdmx_mapping
from leastnoise._release._survey import SAMPLING_COLUMNS, check_survey, resolve_survey
from leastnoise._texts import (
    LANGUAGES,
    Catalogue,
    CodeTexts,
    Names,
    Text,
    capitalize,
    check_key,
    check_languages,
    check_names,
    check_text,
    list_texts,
    load_catalogue,
    name_rows,
    names_in,
    text_in,
)
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
from leastnoise._workload import (
    Product,
    QuerySet,
    Workload,
    all_ranges,
    identity,
    level_names,
    parse_day,
    prefix,
)

FORMATS = ("csv", "parquet", "xlsx", "sdmx")
"""The formats of the files with answers."""
ROUNDING = ("nearest", "controlled")
DEFAULT_FORMATS = ("csv", "parquet")
OCCASIONAL_COLUMNS = (
    "answer_non_negative",
    "answer_nnls",
    "nnls_rmse",
    "answer_local",
    "answer_top_down",
)
"""Columns that only some tables of a release have."""
# The metadata of a text for readers, in one language or several.
_PUBLICATION_TEXT = {"is_publication_text": True}
# A manifest has the other options only if they are set, so that versions without an option can read
# the manifests that do not use it.
_ALWAYS_WRITTEN = (
    "level",
    "formats",
    "non_negative",
    "integer",
    "nnls",
    "local_non_negative",
    "covariances",
    "language",
)
MOST_WRITTEN_ANSWERS = 10_000_000
"""The largest number of answers of one table that is written.

This limit is public.
"""
_SMALLEST_STEP = Fraction(1, 10**12)  # smallest rounding step, in rows or the unit of a measure
_LARGEST_STEP = Fraction(10**18)  # largest rounding step, above every possible count
MOST_TABLES = 200  # tables in a workbook or in SDMX messages
_MOST_ANSWERS = 1_000_000  # answers in a workbook or in SDMX messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a release in addition to its plan.

    All options except the guard are post-processing, and cost nothing.

    In a spec the options are keys of ``[output]``; only ``guard`` is a key of ``[plan]``. The
    manifest lists all options under ``options``.

    Args:
        level: the coverage probability of the intervals, above 0 and below 1.
        formats: the file formats of answers: csv, parquet, xlsx (one Excel workbook with a sheet
            for each table; needs the extra ``excel``) and sdmx (SDMX-CSV 2.0 with a file for each
            table). The formats xlsx and sdmx allow at most 200 tables and a million answers.
        non_negative: if True, add the biased column ``answer_non_negative``.
        integer: if True, add the biased column ``answer_integer`` of whole answers. They are
            computed from the non-negative answers if these are requested.
        nnls: if True, add the biased column ``answer_nnls`` and its simulated errors ``nnls_rmse``.
            The answers are computed by non-negative least squares over all measurements, with the
            total fixed.
        local_non_negative: if True, add the biased column ``answer_local``. It has the nearest
            tables that are consistent and have no negative cell.
        top_down: if True, add the biased column ``answer_top_down``: whole, non-negative answers
            that add up. They are computed from the total down by non-negative least squares and
            controlled rounding. Public counts hold, and impossible cells are 0. One of the tables
            must determine all tables of its quantity as sums.
        covariances: the ids or names of the tables whose covariances are also written.
        round: the rounding step, in rows or in the unit of the measure. Answers are rounded to
            multiples of this step, and intervals become half a step wider on each side. A mapping
            states a step for ``rows``, ``units`` and measures, such as ``{"rows": 5, "pay":
            1000}``; quantities without a step are not rounded. None means no rounding. Answers
            computed after the release are not rounded, because they are not published yet.
        below: the lowest published answer. If an answer (before rounding) is smaller, only this
            fact is published. The bound can be a mapping by quantity, like ``round``. None
            publishes all answers.
        language: the main language of the report, en or de. Defaults to the first language of the
            texts below, or en.
        languages: all languages in which the release has a report. Defaults to ``language`` and the
            languages of the texts below.
        title: the title of the publication in the report, its citation and SDMX. If it is empty, a
            title is composed from the workload. ``title``, ``source``, ``agency``, ``contact`` and
            the texts of ``labels`` may each be a string, or one string for each language: ``{"en":
            "men", "de": "Männer"}``.
        source: the source of the data in one line, such as "Register of vehicles, 31 December
            2025"; empty for none.
        agency: the publisher, for the citation and as the agency of SDMX; empty for none.
        contact: the contact for questions about the data, such as an address; empty for none.
        labels: for each attribute, maps its codes and the codes of its levels to texts, such as
            ``{"sex": {"1": "men", "2": "women"}}``. Pages, charts and terminals show the texts
            instead of the codes. SDMX and Excel contain both; CSV and Parquet files keep the codes.
        names: display names for readers, as in ``[names]`` of a spec: ``rows``, ``units``,
            ``attributes``, ``levels``, ``measures`` and ``tables``.
        survey: the sampling errors of a survey, as in ``[survey]`` of a spec. The intervals of
            tables and means then cover noise and sampling error, and answers have flags by their
            coefficient of variation (CV).
        statements: SQL statements; the report and the files have a separate table for each. The
            plan must contain the tables that the statements need.
        today: the date of CURRENT_DATE in ``statements``, such as "2026-01-31". If it is empty,
            CURRENT_DATE is refused.
        joined_on: the columns on which a `Joined` source is joined. For each joined table, there is
            a pair: the column of the first table and the column of the joined table. Statements may
            then contain a LEFT JOIN of this table. If there are no pairs, JOIN is refused.
        guard: the guard's share of the whole budget, such as "1/100"; the plan has the remaining
            budget (see `leastnoise.plan`). The guard is paid before the plan. The guard measures
            noisy counts of the read and the used rows. It stops the release if, with confidence,
            fewer than half of the read rows are used. None means no guard.
        rows: the number of rows of the source, if this number is public. The guard stops a release
            if, with confidence, the source has fewer than half of this number.
        searches: facts about paid searches of the same data set, from
            `FoundCategories.search_facts` or `FoundBounds.search_facts`. The manifest lists them
            after the payment of the release.
        rounding: "nearest" or "controlled". If rounding is controlled, totals are the sums of their
            rounded parts, and each answer differs from its estimate by less than one step. This
            requires that one of the tables determines all tables of its quantity as sums.
        sdmx: the settings of SDMX files, as in ``[output.sdmx]`` of a spec: agency, flows,
            concepts, codes, units and statuses.

    Raises:
        InputError: an option cannot be used.

    >>> ln.Options(level=0.9, nnls=True, covariances=["sex"]).covariances
    ('sex',)
    """

    level: float = LEVEL
    formats: Sequence[str] = DEFAULT_FORMATS
    non_negative: bool = False
    integer: bool = False
    nnls: bool = False
    local_non_negative: bool = False
    top_down: bool = False
    covariances: Sequence[str] = ()
    language: str = ""
    languages: Sequence[str] = ()
    title: Text = field(default="", metadata=_PUBLICATION_TEXT)
    source: Text = field(default="", metadata=_PUBLICATION_TEXT)
    agency: Text = field(default="", metadata=_PUBLICATION_TEXT)
    contact: Text = field(default="", metadata=_PUBLICATION_TEXT)
    labels: Mapping[str, Mapping[str, Text]] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)
    survey: Mapping[str, Any] = field(default_factory=dict)
    statements: Sequence[str] = ()
    today: str = ""
    joined_on: Sequence[str] = ()
    guard: Exact | None = None
    rows: int | None = None
    searches: Sequence[SearchFacts] = ()
    round: Exact | Mapping[str, Exact] | None = None
    below: Exact | Mapping[str, Exact] | None = None
    rounding: str = "nearest"
    sdmx: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = asdict(self)
        checked: dict[str, Any] = {
            "level": checked_level(self.level),
            "guard": checked_guard_share(self.guard),
            "rows": None if self.rows is None else whole("rows", self.rows, 1, MOST_ROWS),
        }
        self._check_lists_and_texts()
        checked |= {
            name: tuple(dict.fromkeys(options[name]))
            for name in ("formats", "covariances", "statements")
        }
        checked["joined_on"] = tuple(options["joined_on"])
        if len(self.joined_on) % 2:
            raise refuse("joined_on", self.joined_on, "two columns for each joined table")
        self._check_labels()
        checked["labels"] = {
            name: dict(texts_of_codes) for name, texts_of_codes in self.labels.items()
        }
        checked["names"] = check_names(self.names)
        checked["survey"] = check_survey(self.survey)
        read_sdmx_mapping(self.sdmx)
        self._check_rounding_method()
        checked["sdmx"] = dict(self.sdmx)
        checked["languages"] = self._choose_languages(checked["names"])
        checked["language"] = checked["languages"][0]
        self._check_searches()
        checked["searches"] = tuple(self.searches)
        for name in ("round", "below"):
            if options[name] is None:
                checked[name] = None
            else:
                checked[name] = _check_publishable_sizes(name, options[name])
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _check_lists_and_texts(self) -> None:
        """Raise if an option has the wrong type: a list, truth value or text."""
        options = asdict(self)
        if (
            not isinstance(self.formats, (list, tuple))
            or not self.formats
            or any(item not in FORMATS for item in self.formats)
        ):
            raise refuse(
                "formats",
                self.formats,
                "a list of at least one of 'csv', 'parquet', 'xlsx' and 'sdmx'",
            )
        for name in ("non_negative", "integer", "nnls", "local_non_negative", "top_down"):
            if not isinstance(options[name], bool):
                raise refuse(name, options[name], "true or false")
        for name in ("covariances", "statements", "joined_on"):
            if not isinstance(options[name], (list, tuple)) or not all(
                isinstance(entry, str) and entry for entry in options[name]
            ):
                raise refuse(name, options[name], "a list of texts that are not empty")
        if self.language:
            one_of("language", self.language, LANGUAGES)
        if not isinstance(self.languages, (list, tuple)):
            raise refuse(
                "languages",
                self.languages,
                f"a list of languages; allowed are {', '.join(LANGUAGES)}",
            )
        for language in self.languages:
            one_of("an entry of languages", language, LANGUAGES)
        parse_day(self.today or None)
        for name in PUBLICATION_TEXTS:
            if options[name] != "":
                check_text(name, options[name])

    def _check_rounding_method(self) -> None:
        """Raise for an unknown ``rounding``, or controlled rounding without a step."""
        one_of("rounding", self.rounding, ROUNDING)
        if self.rounding == "nearest":
            return
        if self.round is None:
            raise InputError("rounding = 'controlled' needs a step: set round, such as round = 5.")

    def _choose_languages(self, names: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the languages of the reports, with the main language first.

        Raises:
            InputError: a text lacks one of the languages.
        """
        texts: dict[str, object] = {name: getattr(self, name) for name in PUBLICATION_TEXTS}
        texts["names"] = names
        for name, texts_of_codes in self.labels.items():
            # A code of an attribute may look like the code of a language, such as "de".
            texts |= {f"labels {name} {code}": text for code, text in texts_of_codes.items()}
        of_texts: list[str] = []
        for where, value in texts.items():
            for _, translated in list_texts(value, where):
                of_texts.extend(translated)
        first = [self.language] if self.language else []
        languages = tuple(dict.fromkeys([*first, *(self.languages or of_texts)])) or ("en",)
        check_languages(texts, languages)
        return languages

    def text(self, name: str, language: str = "") -> str:
        """Return one of `PUBLICATION_TEXTS`, such as the title, in a language."""
        return text_in(getattr(self, name), language or self.language)

    def names_in(self, language: str = "", *, scaled: bool = False) -> Names:
        """Return the display names of the release in one of its languages.

        If ``scaled`` is True, the names have the scales of sums.
        """
        return names_in(self.names, language or self.language, scaled=scaled)

    def catalogue(self, language: str = "", *, scaled: bool = False) -> Catalogue:
        """Return the catalogue of a language, with the release's display names.

        If ``scaled`` is True, sums have the scales that the names state, such as millions.
        """
        catalogue = load_catalogue(language or self.language)
        return replace(catalogue, names=self.names_in(catalogue.language, scaled=scaled))

    @property
    def terminal_catalogue(self) -> Catalogue:
        """The English catalogue for terminals, with the release's display names.

        The names are English if there are English names; otherwise they are in the main language.
        """
        return replace(load_catalogue(), names=self.names_in(self.terminal_language))

    @property
    def scaled_terminal_catalogue(self) -> Catalogue:
        """The catalogue for terminals, in which sums have their stated scales."""
        names = self.names_in(self.terminal_language, scaled=True)
        return replace(load_catalogue(), names=names)

    @property
    def terminal_language(self) -> str:
        """The language of names and labels in terminals: English if it is available."""
        return "en" if "en" in self.languages else self.language

    def _check_labels(self) -> None:
        """Raise unless ``labels`` maps attributes to mappings from codes to texts."""
        if isinstance(self.labels, Mapping):
            label_texts = self.labels.values()
        else:
            label_texts = [None]
        if not all(map(_has_text_keys, label_texts)):
            allowed = (
                "a mapping from attributes to texts of their codes, such as {'sex': {'1': 'men', "
                "'2': 'women'}}"
            )
            raise refuse("labels", self.labels, allowed)
        for name, texts_of_codes in self.labels.items():
            for code, text in texts_of_codes.items():
                check_text(f"labels {name} {code}", text)

    def _check_searches(self) -> None:
        """Raise unless ``searches`` lists facts about paid searches."""
        is_sequence = isinstance(self.searches, (list, tuple))
        if is_sequence and all(
            isinstance(search, SearchFacts) and search.receipt.payment is not None
            for search in self.searches
        ):
            return
        raise refuse(
            "searches",
            self.searches,
            "a list of results of search_facts() of found categories or bounds that were paid",
        )

    @property
    def plan_dependent_options(self) -> tuple[str, ...]:
        """The names of the options in use that only some plans support."""
        is_chosen = {
            "nnls": self.nnls,
            "local_non_negative": self.local_non_negative,
            "top_down": self.top_down,
            "covariances": bool(self.covariances),
        }
        return tuple(name for name, is_listed in is_chosen.items() if is_listed)

    @property
    def occasional_columns(self) -> tuple[str, ...]:
        """The names of the requested columns that not every table has."""
        is_chosen = (
            self.non_negative,
            self.nnls,
            self.nnls,
            self.local_non_negative,
            self.top_down,
        )
        biased = tuple(
            name for name, is_listed in zip(OCCASIONAL_COLUMNS, is_chosen, strict=True) if is_listed
        )
        return (*biased, *(SAMPLING_COLUMNS if self.survey else ()))

    @property
    def has_rounding(self) -> bool:
        """Whether rounding or suppression may keep tables from adding up."""
        if self.is_controlled:
            return False
        return self.round is not None or self.below is not None or self.suppresses_by_cv

    @property
    def is_controlled(self) -> bool:
        """Whether rounding is controlled: totals equal the sums of rounded parts."""
        return self.rounding == "controlled"

    @property
    def suppresses_by_cv(self) -> bool:
        """Whether answers with a large coefficient of variation are suppressed."""
        return bool(self.survey.get("suppress", False))

    @property
    def has_biased_columns(self) -> bool:
        """Whether a column of biased answers is requested."""
        return (
            self.non_negative
            or self.integer
            or self.nnls
            or self.local_non_negative
            or self.top_down
        )

    @classmethod
    def from_json(cls, value: object) -> "Options":
        """Return the options that `to_json` wrote; raise for an unknown option."""
        names = {option.name for option in fields(cls)}
        if not isinstance(value, Mapping) or not {*value} <= names:
            raise refuse("options", value, "an object with some of " + ", ".join(sorted(names)))
        searches = value.get("searches", [])
        if not isinstance(searches, list):
            raise refuse("options.searches", searches, "a list")
        facts = [
            read_record(SearchFacts, search, f"options.searches[{number}]")
            for number, search in enumerate(searches)
        ]
        return cls(**{**value, "searches": facts})

    def to_json(self) -> dict[str, Any]:
        """Return the options as a JSON object that `from_json` reads.

        Most options are omitted from the object if they are not set.

        >>> Options.from_json(Options(guard="1/100").to_json()) == Options(guard="1/100")
        True
        """
        values = asdict(self)
        for name, value in values.items():
            if isinstance(value, tuple):
                values[name] = list(value)
        values["searches"] = [write_record(search) for search in self.searches]
        exact = {name: values.pop(name) for name in ("guard", "round", "below")}
        exact_texts = {
            name: _exact_to_json(value) for name, value in exact.items() if value is not None
        }
        if len(values["languages"]) == 1:
            del values["languages"]
        if not self.is_controlled:
            del values["rounding"]
        written = {
            name: value for name, value in values.items() if value or name in _ALWAYS_WRITTEN
        }
        return {**written, **exact_texts}


PUBLICATION_TEXTS = tuple(
    option.name for option in fields(Options) if "is_publication_text" in option.metadata
)
"""The options that are texts for readers, such as the title, in one language or several."""


def largest_rounding_change(options: Options, step: Fraction) -> Fraction:
    """Return the largest change of an answer by rounding: a step or half a step."""
    return step if options.is_controlled else step / 2


def _exact_to_json(value: object) -> Any:
    """Return an exact number as text, or a mapping with its numbers as texts."""
    if isinstance(value, Mapping):
        return {key: str(number) for key, number in value.items()}
    return str(value)


def _check_publishable_sizes(
    name: str, value: Exact | Mapping[str, Exact]
) -> Fraction | dict[str, Fraction]:
    """Return checked rounding steps or suppression bounds as fractions."""
    if not isinstance(value, Mapping):
        return _check_publishable_size(name, value)
    if not value or not all(isinstance(key, str) for key in value):
        allowed = "a number, or a mapping such as {'rows': 5, 'pay': 1000}"
        raise refuse(name, value, allowed)
    return {key: _check_publishable_size(f"{name} {key}", number) for key, number in value.items()}


def _check_publishable_size(name: str, value: Exact) -> Fraction:
    """Return a checked rounding step or suppression bound as a fraction."""
    number = exact_positive(name, value)
    if not _SMALLEST_STEP <= number <= _LARGEST_STEP:
        raise refuse(name, value, "a number between 1e-12 and 1e18")
    return number


def display_texts(options: Options, domain: Domain, language: str = "") -> CodeTexts:
    """Return the display text of each code by attribute, in one language.

    Cells of nulls and of other values also have texts. Intervals of numbers have texts if their
    attribute has a display name. The language defaults to the main language of the release.
    """
    catalogue = load_catalogue(language or options.language)
    translations = {
        "other": catalogue.say("other"),
        "(null)": catalogue.say("null_cell"),
        "(outside)": catalogue.say("outside_cell"),
    }
    display_names = options.names_in(catalogue.language)
    texts: dict[str, Mapping[str, str]] = {}
    for name in domain.names:
        labels = domain.kind(name).further_labels
        translated = {label: translations[label] for label in labels}
        changed = {label: text for label, text in translated.items() if text != label}
        names = display_names.attribute(name)
        if names.name:
            with_format = catalogue.with_format(names.number_format)
            changed.update(_texts_of_intervals(domain.kind(name), with_format))
        if changed:
            texts[name] = changed
    for name, texts_of_codes in options.labels.items():
        translated = {
            code: text_in(text, catalogue.language) for code, text in texts_of_codes.items()
        }
        texts[name] = {**texts.get(name, {}), **translated}
    return texts


def _texts_of_intervals(kind: Kind, catalogue: Catalogue) -> dict[str, str]:
    """Return texts such as ``25 to under 45`` by label, for bins and edges.

    The labels of prefix sums, such as ``< 45``, have texts too.
    """
    if not isinstance(kind, (Bins, Edges)):
        return {}
    ends = [catalogue.format_exact(edge) for edge in kind.edges]
    texts = {}
    for label, low, high in zip(kind.regular_labels, ends, ends[1:], strict=False):
        key = "from_to"
        if str(label).startswith("("):
            key = "over_to"
        elif str(label).endswith(")"):
            key = "from_to_under"
        texts[str(label)] = catalogue.say(key, low=low, high=high)
        # Prefix sums have the upper edge of their last cell as the label.
        edge = str(label).rsplit(", ", 1)[1].rstrip(")]")
        texts[f"< {edge}"] = catalogue.say("under_value", value=high)
        texts[f"<= {edge}"] = catalogue.say("up_to_value", value=high)
    return texts


def quantity_key(domain: Domain, measure: str | None) -> str:
    """Return the key of a quantity's rounding rule: "rows", "units" or a measure.

    Counts of values are rounded like rows. A weighted sum is rounded like its measure, and a sum of
    weights like the measure of the weights.
    """
    if measure is None:
        return "rows"
    declared = domain.measure(measure)
    if isinstance(declared, UnitCount):
        return "units"
    if isinstance(declared, (CompleteCount, ValueCount)):
        return "rows"
    if not isinstance(declared, Weighted):
        return measure
    base = declared.weight if isinstance(declared.of, ValueCount) else declared.of
    return next((name for name, other in domain.measures.items() if other == base), measure)


def rounding_rule(options: Options, key: str = "rows") -> tuple[Fraction, Fraction | None]:
    """Return a quantity's rounding step (0 for none) and lowest published answer.

    The lowest answer is None if no answer is suppressed. The step is 0 without rounding.
    `quantity_key` returns the key.
    """
    step = _read_quantity_value("round", options.round, key)
    return step or Fraction(0), _read_quantity_value("below", options.below, key)


def product_rounding(options: Options, product: Product) -> tuple[Fraction, Fraction | None]:
    """Return the rounding step and the lowest published answer of a table."""
    return rounding_rule(options, quantity_key(product.domain, product.measure))


def _read_quantity_value(
    name: str, value: Exact | Mapping[str, Exact] | None, key: str
) -> Fraction | None:
    """Return the number that an option states for a quantity, or None."""
    if isinstance(value, Mapping):
        value = value.get(key)
    return None if value is None else exact_positive(name, value)


def rounded_quantities(options: Options) -> tuple[str, ...]:
    """Return the keys of the quantities that have separate rounding rules."""
    keys: list[str] = []
    for value in (options.round, options.below):
        if isinstance(value, Mapping):
            keys += value
    return tuple(dict.fromkeys(keys))


def check_rounding(options: Options, domain: Domain) -> None:
    """Raise if a rounding rule names a quantity that the domain does not have."""
    keys = ["rows", "units", *domain.measures]
    for name, value in (("round", options.round), ("below", options.below)):
        if isinstance(value, Mapping):
            for key in value:
                check_key(f"a key of {name}", key, keys)


def describe_rounding(options: Options, catalogue: Catalogue, only: str | None = None) -> str:
    """Return sentences on rounding, suppression and their effect on errors.

    Args:
        options: the options of the release.
        catalogue: the texts of a language.
        only: the key of the only quantity whose rule is described; None for all rules.
    """
    keys = rounded_quantities(options)
    if only is not None:
        keys = tuple(key for key in keys if key == only)
    sentences = []
    if not isinstance(options.round, Mapping) and options.round is not None:
        step, _ = rounding_rule(options)
        half_step = catalogue.format_value(largest_rounding_change(options, step))
        key = "rounded_controlled" if options.is_controlled else "rounded"
        sentences.append(catalogue.say(key, to=catalogue.format_value(step), half=half_step))
    if not isinstance(options.below, Mapping) and options.below is not None:
        _, bound = rounding_rule(options)
        sentences.append(catalogue.say("left_out", below=catalogue.format_value(bound)))
    for key in keys:
        step, bound = rounding_rule(options, key)
        name = capitalize(_name_quantity(key, catalogue))
        if step and isinstance(options.round, Mapping):
            change = _with_unit(largest_rounding_change(options, step), key, catalogue)
            values = {"to": _with_unit(step, key, catalogue), "half": change}
            sentences.append(catalogue.say("rounded_of", name=name, **values))
        if bound is not None and isinstance(options.below, Mapping):
            below = catalogue.format_value(bound)
            sentences.append(catalogue.say("left_out_of", name=name, below=below))
    return " ".join(sentences)


def _with_unit(step: Fraction, key: str, catalogue: Catalogue) -> str:
    """Return a step, with its unit if sums are shown on another scale."""
    text = catalogue.format_value(step)
    names = catalogue.names.measure(key)
    return f"{text} {names.unit}" if names.scale != 1 and names.unit else text


def _name_quantity(key: str, catalogue: Catalogue) -> str:
    """Return the display name of the quantity of a rounding rule."""
    if key == "rows":
        return name_rows(catalogue)
    if key == "units":
        return catalogue.names.units or catalogue.say("name_units")
    names = catalogue.names.measure(key)
    return names.sum or catalogue.say("sums_of", names=names.name or key)


def _has_text_keys(value: object) -> bool:
    """Return whether a value is a mapping with non-empty texts as keys."""
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(key, str) and key for key in value)


def tables_to_write(products: Sequence[Product]) -> tuple[Product, ...]:
    """Return the tables to write; a table that is too large is replaced.

    The table of the cells replaces a table that is too large to write, and its prefix sums are
    added at the end.
    """
    tables = []
    prefix_sums = []
    for product in products:
        if is_too_large_to_write(product):
            tables.append(_replace_all_ranges(product, identity()))
            prefix_sums.append(_replace_all_ranges(product, prefix()))
        else:
            tables.append(product)
    return (*tables, *prefix_sums)


def is_too_large_to_write(product: Product) -> bool:
    """Return whether a table is too large to write, but its cells are not."""
    return product.rows > MOST_WRITTEN_ANSWERS >= _replace_all_ranges(product, identity()).rows


def is_contained_in(question: Product, table: Product) -> bool:
    """Return whether each query of ``question`` is also a query of ``table``."""
    pairs = zip(question.query_sets, table.query_sets, strict=False)
    return (question.measure, question.attributes) == (table.measure, table.attributes) and all(
        queries == table_queries or (table_queries == all_ranges() and queries.form.intervals)
        for queries, table_queries in pairs
    )


def resolve_names(names: Mapping[str, Any], workload: Workload) -> dict[str, Any]:
    """Return display names keyed by full table names and level keys.

    In ``names``, ids may stand for tables, and names of levels for level keys.

    Raises:
        InputError: neither the workload nor its domain has a part of this name.
    """
    checked = check_names(names)
    domain = workload.domain
    known_keys = {
        "attributes": {name: name for name in domain.names},
        "levels": _level_keys(domain),
        "measures": {name: name for name in domain.measures},
        "tables": _table_names(workload),
    }
    for part, keys in known_keys.items():
        entries = checked.get(part, {})
        for key in entries:
            check_key(f"a key of names {part}", key, keys)
        if entries:
            checked[part] = {keys[key]: entry for key, entry in entries.items()}
    return checked


def find_table_or_groups(workload: Workload, key: str) -> Product | None:
    """Return the table of a name or id, also of a mean's groups, or None."""
    name = _table_names(workload).get(key)
    for product in tables_to_write(workload.products):
        if product.name == name:
            return product
    for statistic in workload.statistics:
        if statistic.name == name and statistic.form.of_measure:
            return workload.tables_of(statistic)[0]
    return None


def name_survey_tables(survey: Mapping[str, Any], workload: Workload) -> dict[str, Any]:
    """Return a section ``[survey]`` with its rules keyed by table name."""
    return resolve_survey(survey, workload, _table_names(workload))


def check_names_and_survey(options: Options, workload: Workload) -> None:
    """Raise if names, survey rules or SDMX concepts do not fit a workload.

    Raises:
        InputError: a name or concept is for a part that the workload does not have, or a rule does
            not fit its table.
    """
    resolve_names(options.names, workload)
    name_survey_tables(options.survey, workload)
    check_sdmx_mapping(options.sdmx, workload.domain)
    check_rounding(options, workload.domain)


def with_table_names(options: Options, workload: Workload) -> Options:
    """Return options whose display names and survey rules use table names.

    Unknown names are ignored, because a release of a series has only the first of the planned
    answers.
    """
    names_by_key = {"tables": _table_names(workload), "levels": _level_keys(workload.domain)}
    names = dict(options.names)
    for part, names_of_part in names_by_key.items():
        if part in names:
            names[part] = {names_of_part.get(key, key): entry for key, entry in names[part].items()}
    survey = dict(options.survey)
    if survey:
        rules = survey["tables"]
        table_names = names_by_key["tables"]
        survey["tables"] = {table_names.get(key, key): rule for key, rule in rules.items()}
    return replace(options, names=names, survey=survey)


def _level_keys(domain: Domain) -> dict[str, str]:
    """Return the full key, such as ``store:region``, of each level name or key.

    A name that several attributes use for a level is left out.
    """
    full_keys: list[tuple[str, str]] = []
    for name in domain.names:
        full_keys += [(level, f"{name}:{level}") for level in level_names(domain.kind(name))]
    counts = Counter(level for level, _ in full_keys)
    unique_levels = {level: key for level, key in full_keys if counts[level] == 1}
    return {key: key for _, key in full_keys} | unique_levels


def _table_names(workload: Workload) -> dict[str, str]:
    """Map the name and the id of each table and statistic to its name."""
    products = tables_to_write(workload.products)
    names = {product.name: product.name for product in products}
    names |= {f"q{number}": product.name for number, product in enumerate(products, 1)}
    statistics = workload.statistics
    names |= {statistic.name: statistic.name for statistic in statistics}
    names |= {f"s{number}": statistic.name for number, statistic in enumerate(statistics, 1)}
    return names


def _replace_all_ranges(product: Product, replacement: QuerySet) -> Product:
    """Return a table with ``replacement`` instead of each set of all ranges."""
    query_sets = list(product.query_sets)
    for position, queries in enumerate(product.query_sets):
        if queries == all_ranges():
            query_sets[position] = replacement
    return replace(product, query_sets=tuple(query_sets))


def check_formats(formats: Sequence[str], tables: Sequence[Product]) -> None:
    """Raise if a file format cannot store the tables of a release."""
    for name in formats:
        if name == "xlsx":
            try:
                import xlsxwriter  # noqa: F401 - whether it is there
            except ImportError:
                raise InputError(
                    "Answers as xlsx need the extra 'excel': pip install 'leastnoise[excel]'."
                ) from None
        if name in ("xlsx", "sdmx"):
            advice = "Leave that format out, or ask for less."
            answers = sum(product.rows for product in tables)
            if len(tables) > MOST_TABLES:
                raise refuse(
                    f"a release in the format {name!r}",
                    f"{len(tables)} tables",
                    f"of at most {MOST_TABLES} tables",
                    advice,
                )
            if answers > _MOST_ANSWERS:
                raise refuse(
                    f"a release in the format {name!r}",
                    f"{answers} answers",
                    f"of at most {_MOST_ANSWERS} answers",
                    advice,
                )


def _join_first_five(texts: Sequence[str]) -> str:
    """Return the first five texts joined by commas, with "..." if more follow."""
    more = ["..."] if len(texts) > 5 else []
    return ", ".join([*texts[:5], *more])


def find_table_position(products: Sequence[Product], key: str) -> int:
    """Return the position of the table with an id or a unique name."""
    if (
        key[:1] == "q"
        and key[1:].isdecimal()
        and key == f"q{int(key[1:])}"
        and 1 <= int(key[1:]) <= len(products)
    ):
        return int(key[1:]) - 1
    positions = [position for position, product in enumerate(products) if product.name == key]
    if len(positions) == 1:
        return positions[0]
    if positions:
        listed = _join_first_five([f"q{position + 1}" for position in positions])
        raise InputError(f"Several tables are named {key!r}; take one by its id: {listed}.")
    first_tables = _join_first_five(
        [f"q{number} ({product.name})" for number, product in enumerate(products, 1)]
    )
    raise InputError(
        f"A table must be called by its id or name; got {quoted(key)}. "
        f"This release has {first_tables}."
    )
