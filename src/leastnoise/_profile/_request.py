"""Plan the tables of a profile, and write them as a spec."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._profile._column_cells import (
    SEARCH_SHARE,
    MeasuredColumn,
    choose_measured_columns,
    with_categories,
)
from leastnoise._profile._unit_sizes import SIZE_SHARE
from leastnoise._session import CSV, DatabaseTable, schema
from leastnoise._spec import (
    SourceColumns,
    format_toml_key,
    format_toml_value,
    path_for_spec,
    source_columns,
)
from leastnoise._trusted.accounting import ApproxDP, Budget, Privacy, PureDP, parameters_by_name
from leastnoise._trusted.check import Exact, InputError, exact_positive, number_text, whole

SPEC_FILE = "profile.toml"
RELEASE_FOLDER = "release"
UNIT_SIZE_FOLDER = "unit-sizes"
_HEAD = """\
# The measurements of `leastnoise profile`. The cells follow from the names and types of the
# columns, and categories come from a search that was paid. Do not edit it: the same command
# finishes a stopped profile.
"""
_PLAN = """
[[workload]]
marginals = { ways = 1 }

[plan]
seconds = 5

[output]
level = 0.95
formats = ["csv"]
"""


@dataclass(frozen=True, kw_only=True)
class ProfileRequest:
    """The request of a profile: its data, budget and privacy unit.

    Attributes:
        source: a path, a `DatabaseTable` or a data frame.
        epsilon: the epsilon of the profile's budget.
        delta: the delta of the profile's budget, for searches for categories; None for no delta.
        unit: ``"row"``, or the column that names a person; None if no column seems to name a
            person.
        max_rows: the largest number of rows of a person that count. If None, it is chosen from the
            histogram of the number of rows per person. It must be None for ``"row"``.
        layout: settings of ``[source]`` on the format of a file, such as ``delimiter``.
    """

    source: Any
    epsilon: Exact
    delta: Exact | None = None
    unit: str | None = None
    max_rows: int | None = None
    layout: Mapping[str, Any] = field(default_factory=dict)

    def budget(self, factor: Fraction = Fraction(1)) -> Budget:
        """Return the budget of the profile, multiplied by a factor."""
        epsilon = exact_positive("epsilon", self.epsilon) * factor
        if self.delta is None:
            return PureDP(epsilon)
        return ApproxDP(epsilon, exact_positive("delta", self.delta) * factor)

    @property
    def unit_column(self) -> str | None:
        """The column that names a person; None if every row is a different person."""
        return None if self.unit in {None, "row"} else self.unit

    def privacy(self, factor: Fraction = Fraction(1)) -> Privacy:
        """Return the privacy guarantee of the profile, for a multiple of its budget.

        The budget is multiplied by ``factor``.

        If ``max_rows`` is None, one row of each unit counts until the histogram of units is
        measured.
        """
        return Privacy(self.budget(factor), "add_remove", self.unit_column, self.max_rows or 1)


@dataclass(frozen=True, kw_only=True)
class ProfilePlan:
    """The tables that a profile measures, and settings of the spec for them.

    Attributes:
        request: the request.
        columns: the columns of the data.
        tables: the tables: one or two for each column.
        folder: the directory of the profile.
        table_share: the share of the profile's budget that pays for these tables, and for searches
            that are not paid yet.
    """

    request: ProfileRequest
    columns: SourceColumns
    tables: tuple[MeasuredColumn, ...]
    folder: Path
    table_share: Fraction = Fraction(1)

    def source_settings(self) -> dict[str, Any]:
        """Return the settings ``[source]`` for a spec in the profile's folder."""
        source = self.request.source
        if isinstance(source, Path):
            location = {"path": path_for_spec(source, self.folder / SPEC_FILE)}
        elif isinstance(source, DatabaseTable):
            location = {"table": source.table, "connection": source.connection}
        else:
            location = {}
        return {**location, **self.request.layout}

    def unit_setting(self) -> Any:
        """Return the value of ``unit`` in ``[privacy]`` of a spec."""
        if self.request.unit_column is None:
            return "row"
        return {"column": self.request.unit_column, "max_rows": self.request.max_rows or 1}

    @property
    def measures_unit_sizes(self) -> bool:
        """Whether the profile measures a histogram of the number of rows per unit."""
        return self.request.unit_column is not None

    def unit_size_privacy(self) -> Privacy:
        """Return the privacy guarantee of the histogram of unit sizes.

        Its budget is a share of the budget that remains after the searches for categories.
        """
        share = 1 - SEARCH_SHARE if self.searched_tables else self.table_share
        budget = self.request.budget(share)
        return self.request.privacy().within(budget.share(SIZE_SHARE))

    @property
    def searched_tables(self) -> tuple[MeasuredColumn, ...]:
        """The tables that need a search for categories."""
        return tuple(table for table in self.tables if "unknown" in table.settings)

    def with_categories(self, categories: Mapping[str, Sequence[str]]) -> "ProfilePlan":
        """Return the plan after the searches, for the remaining budget.

        Args:
            categories: the categories by attribute.
        """
        tables = with_categories(self.tables, categories)
        table_share = 1 - SEARCH_SHARE if categories else self.table_share
        return replace(self, tables=tables, table_share=table_share)

    def with_max_rows(self, max_rows: int) -> "ProfilePlan":
        """Return the plan with this ``max_rows``.

        If the request has another limit, that limit is used.
        """
        if self.request.max_rows is not None:
            return self
        return replace(self, request=replace(self.request, max_rows=max_rows))

    def spec_text(self) -> str:
        """Return the text of a spec that measures the tables.

        The budget of the histogram of unit sizes is deducted only after the searches, because a
        budget with searches cannot be divided.
        """
        budget = parameters_by_name(self.request.budget(self.table_share))
        privacy: dict[str, Any] = {name: number_text(number) for name, number in budget.items()}
        if self.measures_unit_sizes and not self.searched_tables:
            privacy["share"] = str(1 - SIZE_SHARE)
        privacy["unit"] = self.unit_setting()
        parts = [_HEAD]
        if source := self.source_settings():
            parts.append(format_section("source", source))
        parts.append(format_section("privacy", privacy))
        for table in self.tables:
            name = f"domain.{format_toml_key(table.attribute)}"
            parts.append(format_section(name, table.settings))
        return "".join([*parts, _PLAN])


def format_section(name: str, settings: Mapping[str, Any]) -> str:
    """Return a table of TOML as text, preceded by an empty line."""
    lines = [
        f"{format_toml_key(key)} = {format_toml_value(entry)}\n" for key, entry in settings.items()
    ]
    return "".join([f"\n[{name}]\n", *lines])


def plan_profile(request: ProfileRequest, folder: Path) -> ProfilePlan:
    """Return the tables of a profile, chosen from column names and types.

    Args:
        request: the data, the budget and the unit.
        folder: the directory of the profile.

    Raises:
        InputError: no unit is stated although a column may name persons, no column can be profiled,
            or the source cannot be opened.
    """
    source = request.source
    layout = {key: entry for key, entry in request.layout.items() if key != "null"}
    columns = source_columns(schema(CSV(source, **layout) if layout else source))
    _check_unit(request, columns)
    request.budget()
    tables = choose_measured_columns(
        columns, unit_column=request.unit_column, has_delta=request.delta is not None
    )
    return ProfilePlan(request=request, columns=columns, tables=tables, folder=folder)


def _check_unit(request: ProfileRequest, columns: SourceColumns) -> None:
    """Raise if the unit is not stated or not a column, or if max_rows is wrong."""
    if request.unit is None:
        names = [column.name for column in columns.listed if column.names_person]
        candidates = names or list(columns.candidates)
        if candidates:
            raise InputError(
                "A profile must know whose rows are protected; got no unit, and "
                f"{candidates[0]!r} may name persons. Give --unit {candidates[0]!r}, or --unit "
                "row if every row is a different person."
            )
    if request.unit_column is None:
        if request.max_rows is not None:
            raise InputError(
                "max_rows needs a unit with a column; in this request every row is a unit. Name "
                "the column of the person, or leave out max_rows."
            )
        return
    if request.unit not in [column.name for column in columns.listed]:
        raise InputError(
            f"The unit must be 'row' or a column of the data; got {request.unit!r}. "
            "Name such a column."
        )
    if request.max_rows is not None:
        whole("max_rows", request.max_rows, 1)
