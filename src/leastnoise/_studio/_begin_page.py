"""The pages to begin with: forms for the data, the values of columns, the tables and the budget, and the spec that they make.

They know the names and types of columns, and no value.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomlkit
from starlette.responses import JSONResponse

from leastnoise._charts import vega_lite
from leastnoise._plan import Plan
from leastnoise._release import LANGUAGES, Texts, picture_of, texts
from leastnoise._session import CSV, DatabaseTable, file_endings, schema
from leastnoise._spec import SourceColumn, SourceColumns, parse_spec, source_columns
from leastnoise._studio._draft import save_spec, to_toml
from leastnoise._studio._explore_page import MOST_CELLS
from leastnoise._studio._pages import (
    Page,
    action_route,
    asset_routes,
    chart_json,
    page_route,
    render_page,
)
from leastnoise._studio._planning import Planning, planning_page, state_json, table_margins
from leastnoise._trusted.check import InputError, exact, message, one_of
from leastnoise._trusted.linop import apply

Form = Mapping[str, str]
"""The fields of the form by name, empty where nothing is filled in: ``c3.low`` belongs to column 3, ``a1.what`` to question 1."""
FORMS = {"text": "list", "whole": "whole", "number": "number", "date": "dates", "truth": "truth"}
"""The form that is suggested for each kind of column."""
# The keys of [domain.NAME] for each form of a column, with $ before the names of fields.
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "list": {"categories": "$codes"},
    "file": {"categories": {"file": "$file", "column": "$file_column"}},
    "whole": {"integers": ["$low", "$high"]},
    "number": {"bins": {"low": "$low", "high": "$high", "count": "$count"}},
    "dates": {"dates": {"from": "$from", "to": "$to", "by": "$by"}},
    "unknown": {"unknown": {"most": "$most"}},
    "truth": {"categories": [True, False]},
}
_BEYOND = ("clip", "drop", "other")  # what numbers beyond the bounds do; the first is the usual one
# The part of the workload for each question: $groups are the columns that are ticked, $by the same
# as a list.
_QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "counts": {"queries": "$groups"},
    "top": {"queries": "$groups"},
    "means": {"means": {"of": "$of", "by": "$by"}},
    "median": {"quantiles": {"of": "$of", "by": "$by", "at": ["0.5"]}},
    "quartiles": {"quantiles": {"of": "$of", "by": "$by", "at": ["0.25", "0.5", "0.75"]}},
    "cdf": {"cdf": {"of": "$of", "by": "$by"}},
    "sums": {"queries": "$groups", "sum": "$of"},
}
_ALONG = (
    "median",
    "quartiles",
    "cdf",
)  # questions about the order of a column, which is an attribute then
_SUMMED = ("means", "sums")  # questions that add up a column, which is a measure then
WEIGHTED = ("counts", "top", "means", "sums")
"""The questions in which rows may count as often as their weight says."""
PERIODS = ("year", "quarter", "month", "week", "day", "hour", "weekday")
NUMBERS = {"1234.56": ("", ""), "1234,56": (",", ""), "1.234,56": (",", "."), "1,234.56": ("", ",")}
"""The settings ``decimal`` and ``thousands`` of [source] for each way to write numbers in a text file."""
DAYS = {
    "2025-12-31": "",
    "31.12.2025": "%d.%m.%Y",
    "31/12/2025": "%d/%m/%Y",
    "12/31/2025": "%m/%d/%Y",
}
_NUMBERS = {
    "low",
    "high",
    "step",
    "epsilon",
    "margin",
    "delta",
    "size",
    "max_rows",
    "most",
}  # fields of numbers
_HEAD = """\
# A spec for leastnoise, filled in on the page of `leastnoise studio` from names and types of columns: it holds no value of the data.

"""
_NO_STEPS = (
    "The step of {name} must divide the way from {low} to {high} into whole steps; got {step}."
)
_TOO_MANY = "{name} would have {count} values here, and at most {most} are allowed. Take wider steps, or numbers in steps of a width."
_MOST_DRAWN = 4
_MOST_VALUES = 10**6
_INVENTED_ROWS = 10_000
Lead = Callable[[Page], Mapping[str, str]]
"""Shows another page, and returns the reply to the browser, which then asks for that page."""


@dataclass(frozen=True, slots=True)
class Data:
    """The place of the data and the names and types of their columns.

    Args:
        name: how pages call them.
        folder: where the spec will be: beside a file, or the current folder.
        table: the part ``[source]`` of the spec.
        suggested: the columns, with what their names and types suggest.
    """

    name: str
    folder: Path
    table: Mapping[str, Any]
    suggested: SourceColumns

    @property
    def columns(self) -> tuple[SourceColumn, ...]:
        """The columns, in order."""
        return self.suggested.listed


def read_columns(source: Path | DatabaseTable, layout: Mapping[str, str]) -> Data:
    """Read the names and types of columns; no value is read."""
    if isinstance(source, DatabaseTable):
        table, name, folder = (
            {"table": source.table, "connection": source.connection},
            source.table,
            Path.cwd(),
        )
    else:
        table, name, folder = {"path": source.name, **layout}, source.name, source.absolute().parent
    typed_source: Any = source
    if layout and isinstance(source, Path):
        typed_source = CSV(source, layout.get("delimiter"), layout.get("encoding", "utf-8"))
    return Data(name, folder, table, source_columns(schema(typed_source)))


def spec_from_form(data: Data, form: Form, language: str, *, in_sql: bool = False) -> str:
    """Return the text of the spec that a form describes, checked; numbers are written with a comma in German.

    If SQL is to ask in place of the form (``in_sql``), the form may ask nothing; the spec then
    describes all columns.
    """
    form = {
        key: _replace_decimal_comma(text)
        if language == "de" and key.rpartition(".")[2] in _NUMBERS
        else text
        for key, text in form.items()
    }
    questions = {
        int(part.group(1))
        for key in form
        if (part := re.fullmatch(r"a(\d{1,3})\.what", key)) and form[key]
    }
    # the number of each column by its attribute, which has the name of the column and its unit of
    # measure: "pay (EUR)"
    numbers = {}
    for number, column in enumerate(data.columns):
        if kind := form.get(f"c{number}.kind"):
            unit = (
                form.get(f"c{number}.unit", "") if kind == "number" and questions else ""
            )  # SQL calls a column by its name
            numbers[f"{column.attribute} ({unit})" if unit else column.attribute] = number
    kinds = {name: form[f"c{number}.kind"] for name, number in numbers.items()}
    asked = [
        _read_question(question, {number: name for name, number in numbers.items()}, form)
        for question in sorted(questions)
    ]
    if not asked and (not in_sql or form.get("how") == "within"):
        raise InputError("Nothing is asked yet: choose what to publish.")
    within = form.get("margin", "") if form.get("how") == "within" else ""
    if form.get("how") == "within" and not within:
        raise InputError(
            "Say how far a number may be from the truth, such as 500; or give a budget."
        )
    used = {name for question in asked for name in question.attributes} if asked else {*numbers}
    weights = {question.weight for question in asked if question.weight}
    measured = weights | {question.of for question in asked if question.kind in _SUMMED}
    measured |= {
        name for name, kind in kinds.items() if not asked and kind in ("whole", "number")
    }  # for SQL, which may sum any
    privacy: dict[str, Any] = {"epsilon": "least" if within else form.get("epsilon", "")}
    if any(kinds[name] == "unknown" for name in used):  # finding categories privately needs a delta
        privacy["delta"] = form.get("delta", "")
    unit = form.get("unit", "")
    if unit and not (unit.isdecimal() and int(unit) < len(data.columns)):
        raise InputError(
            "What is protected must be each row, or each value of a column; choose one."
        )
    privacy["unit"] = (
        {
            "column": data.columns[int(unit)].name,
            "max_rows": _parse_number(form.get("max_rows", "")),
        }
        if unit
        else "row"
    )
    decimal, thousands = NUMBERS[
        one_of("how numbers are written", form.get("numbers") or "1234.56", NUMBERS)
    ]
    written = {
        "encoding": form.get("encoding", "").replace("utf-8", ""),
        "decimal": decimal,
        "thousands": thousands,
    }
    table: dict[str, Any] = {
        "source": {**data.table, **{key: text for key, text in written.items() if text}},
        "privacy": privacy,
    }
    described = used or measured  # a domain has an attribute, even if none is asked about
    table["domain"] = {
        name: _attribute_table(data.columns[number], number, name, form)
        for name, number in numbers.items()
        if name in described
    }
    for name in sorted(measured):
        low, high, step = (
            form.get(f"c{numbers[name]}.{field}", "") for field in ("low", "high", "step")
        )
        multiples = {"unit": step} if name in weights and kinds[name] == "number" else {}
        clipped = {
            "column": data.columns[numbers[name]].name,
            "clip": [_parse_number(low), _parse_number(high)],
            **multiples,
        }
        table.setdefault("measures", {})[name] = clipped
    if asked:
        table["workload"] = _workload_entries(asked, within, table.get("measures", {}))
    table["plan"] = {"guard": "1/100"}
    output = {
        "title": form.get("title", ""),
        "source": form.get("source", ""),
        "language": "" if language == "en" else language,
    }
    table |= (
        {"output": {key: text for key, text in output.items() if text}}
        if any(output.values())
        else {}
    )
    text = _HEAD + _format_toml(table)
    parse_spec(text if asked else f"{text}\n[[workload]]\nqueries = {{}}\n", data.folder)
    return text


def _replace_decimal_comma(text: str) -> str:
    """Replace the decimal comma of a number by the point of specs."""
    if re.search(r"\.\d{3}(\D|$)", text):
        raise InputError(
            message(
                "A number must be written without separators of thousands; got {text}.", text=text
            )
        )
    return text.replace(",", ".")


def _fill_template(template: Any, fields: Mapping[str, Any]) -> Any:
    """Fill the fields into a part of a spec."""
    if isinstance(template, Mapping):
        return {key: _fill_template(entry, fields) for key, entry in template.items()}
    if isinstance(template, list):
        return [_fill_template(entry, fields) for entry in template]
    return (
        fields[template[1:]] if isinstance(template, str) and template.startswith("$") else template
    )


class Question(NamedTuple):
    """What a question of the page asks: the columns that split its table, the column that it is about, and the column of weights."""

    kind: str
    groups: Mapping[str, Any]
    of: str
    weight: str
    size: str

    @property
    def attributes(self) -> set[str]:
        """The columns that its tables have as attributes."""
        return {*self.groups} | ({self.of} if self.kind in _ALONG else {*()})

    def part(self) -> dict[str, Any]:
        """Return its part of the workload."""
        groups_listed = [
            name if sets == "identity" else {name: sets} for name, sets in self.groups.items()
        ]
        entry = _fill_template(
            _QUESTIONS[self.kind], {"groups": self.groups, "by": groups_listed, "of": self.of}
        )
        entry |= {"size": self.size} if self.size and "queries" not in entry else {}
        return {**entry, **({"weighted_by": self.weight} if self.weight else {})}


def _read_question(number: int, names: Mapping[int, str], form: Form) -> Question:
    """Read a question of the form; each ticked column is split by its values or by the groups of a level."""
    fields = {
        field: form.get(f"a{number}.{field}", "") for field in ("what", "of", "size", "weight")
    }
    kind = one_of("what is published", fields["what"], _QUESTIONS)
    groups: dict[str, Any] = {}
    for column, name in names.items():
        splits = [
            split
            for split in ("cells", "group", "level")
            if form.get(f"a{number}.by.{column}.{split}")
        ]
        if len(splits) > 1:
            raise InputError(
                message(
                    "A table must have the values of {name} or their groups, not both; ask for "
                    "two tables.",
                    name=name,
                )
            )
        if splits:
            level = form.get(f"c{column}.level", "") if splits == ["level"] else "group"
            groups[name] = "identity" if splits == ["cells"] else {"level": level}
    columns_of = {"of": "", "weight": ""}
    column_fields = [("weight", "Weights")] if kind in WEIGHTED and fields["weight"] else []
    column_fields += (
        [("of", "Means, medians, distributions and sums")] if kind in (*_SUMMED, *_ALONG) else []
    )
    for field, subject in column_fields:
        if not fields[field].isdecimal() or int(fields[field]) not in names:
            raise InputError(
                message(
                    "{what} must be of a column of numbers that is published; choose one.",
                    what=subject,
                )
            )
        columns_of[field] = names[int(fields[field])]
    if kind == "top" and len(groups) != 1:
        raise InputError("The largest groups must be of one column; tick one.")
    return Question(kind, groups, **columns_of, size=fields["size"])


def _workload_entries(
    questions: Sequence[Question], margin: str, measures: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the parts of the workload, with a margin as their target if one is given.

    A statistic has no such target, so the tables that it is made of are added with one; for a sum
    it is the margin times the largest value.
    """
    parts = [question.part() for question in questions]
    if not margin:
        return parts
    parts = [{**part, "margin": margin} if "queries" in part else part for part in parts]
    for question in questions:
        if question.kind in _ALONG:
            parts.append({"queries": {**question.groups, question.of: "prefix"}, "margin": margin})
        elif question.kind == "means":
            weighted = {"weighted_by": question.weight} if question.weight else {}
            parts.append(
                {"queries": question.groups, "count": question.of, **weighted, "margin": margin}
            )
            total = {"queries": question.groups, "sum": question.of, **weighted}
            if {**total, "margin": margin} not in parts:
                bounds = measures[question.of]["clip"]
                largest_value = max(
                    abs(exact(message("a bound of {name}", name=question.of), end))
                    for end in bounds
                )
                parts.append(
                    {**total, "margin": str(exact("the distance", margin) * largest_value)}
                )
    return parts


def _attribute_table(column: SourceColumn, number: int, name: str, form: Form) -> dict[str, Any]:
    """Return the table ``[domain.NAME]`` of a column."""
    fields_given = {
        key.partition(".")[2]: text.strip()
        for key, text in form.items()
        if key.startswith(f"c{number}.")
    }
    texts = {
        field: fields_given.get(field, "")
        for field in ("file", "file_column", "low", "high", "step", "from", "to", "by", "most")
    }
    kind = one_of(
        message("what {name} may hold", name=name),
        fields_given["kind"],
        ("list", "file", *FORMS.values(), "unknown"),
    )
    fields: dict[str, Any] = {
        key: _parse_number(text) if key in _NUMBERS else text for key, text in texts.items()
    }
    codes, count = (
        [code.strip() for code in fields_given.get("list", "").splitlines() if code.strip()],
        0,
    )
    fields["codes"] = [
        *dict.fromkeys(map(_parse_number, codes) if column.kind == "whole" else codes)
    ]
    if kind == "whole" and isinstance(fields["low"], int) and isinstance(fields["high"], int):
        count = fields["high"] - fields["low"]
    if kind == "number":
        what = message("a bound or the step of {name}", name=name)
        low, high, step = (exact(what, texts[field]) for field in ("low", "high", "step"))
        steps = (high - low) / step if step > 0 else Fraction(0)
        if steps.denominator != 1 or steps < 1:
            raise InputError(
                message(
                    _NO_STEPS, name=name, low=texts["low"], high=texts["high"], step=texts["step"]
                )
            )
        count = fields["count"] = int(steps)
    if count > _MOST_VALUES:  # their groups could not be shown without a wait
        raise InputError(message(_TOO_MANY, name=name, count=count, most=_MOST_VALUES))
    table = {
        **({} if name == column.name else {"column": column.name}),
        **_fill_template(_COLUMNS[kind], fields),
    }
    if kind == "dates" and fields_given.get("zone"):
        table["dates"]["zone"] = fields_given["zone"]
    if kind == "dates" and (
        days := DAYS[one_of("how days are written", form.get("days") or "2025-12-31", DAYS)]
    ):
        table["dates"]["format"] = days
    if (
        fields_given.get("other") or kind == "unknown"
    ):  # a row whose text is not found would be in no table otherwise
        table |= {"outside": "other", "null": "other"}
    if kind in ("whole", "number"):
        what = message("values of {name} beyond the bounds", name=name)
        table["outside"] = one_of(what, fields_given.get("beyond") or "clip", _BEYOND)
    levels: dict[str, Any] = {}
    if fields_given.get("edges") and kind in ("whole", "number"):
        levels["group"] = {
            "edges": [_parse_number(edge) for edge in re.split(r"[\s,;]+", fields_given["edges"])]
        }
    if (level := fields_given.get("level")) and kind in ("list", "file", "whole"):
        key = fields_given.get("level_key") or texts["file_column"]
        levels[level] = {
            "file": fields_given.get("level_file") or texts["file"],
            "key": key,
            "value": fields_given.get("level_value") or level,
        }
    return {**table, **({"levels": levels} if levels else {})}


def _parse_number(text: str) -> int | str:
    """Return a whole number as int, and any other text as it is, which is exact."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text.strip()) else text.strip()


def _format_toml(table: Mapping[str, Any]) -> str:
    """Write a spec as TOML, with a line for each key."""
    document = tomlkit.document()
    for part, entry in table.items():
        if isinstance(entry, list):
            document[part] = tomlkit.aot()
            for row in entry:
                document[part].append(to_toml(row))
        elif part in ("domain", "measures"):
            document[part] = tomlkit.table(is_super_table=True)
            for name, row in entry.items():
                document[part][name] = to_toml(row)
        else:
            document[part] = to_toml(entry)
    return re.sub(r"(?<!\n)\n\[\[", "\n\n[[", tomlkit.dumps(document))


def list_commands(path: Path, *, in_sql: bool = False) -> Sequence[str]:
    """Return the commands that plan and release a saved spec, to be typed where the studio was started; ``in_sql`` adds a file of SQL."""
    import shlex

    shown_path = shlex.quote(
        os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    )
    arguments = f"questions.sql --spec {shown_path}" if in_sql else shown_path
    return [
        f"leastnoise plan {arguments}",
        f"leastnoise release {arguments} --out {shlex.quote(path.stem)}-release",
    ]


def source_page(show_page: Lead, language: str = "en") -> Page:
    """Return the page that asks for the data: a file, or a table of a database."""
    catalogue = texts(language)

    def page() -> str:
        files = sorted(
            file.name for file in Path.cwd().iterdir() if file.name.lower().endswith(file_endings())
        )
        return render_page("choosing.html", t=catalogue, files=files, folder=Path.cwd())

    def choose(arguments: dict[str, Any]) -> Any:
        form = _read_form(arguments)
        if form.get("table") or form.get("connection"):
            source: Path | DatabaseTable = DatabaseTable(
                form.get("table", ""), form.get("connection", "")
            )
        elif form.get("path"):
            source = Path(form["path"]).expanduser()
        else:
            raise InputError("Name a file, or a table and its connection.")
        layout = {key: form[key] for key in ("delimiter", "encoding") if form.get(key)}
        return show_page(form_page(read_columns(source, layout), show_page, language))

    return Page(
        [
            page_route("/", page),
            *asset_routes("choosing.js"),
            action_route("/choose", choose, catalogue),
            action_route(
                "/language",
                lambda arguments: show_page(source_page(show_page, _read_language(arguments))),
                catalogue,
            ),
        ]
    )


def form_page(data: Data, show_page: Lead, language: str = "en") -> Page:
    """Return the page that makes a spec from the names and types of columns."""
    catalogue = texts(language)
    plannings: list[Planning] = []  # the form that was planned last, if one was

    def stop_planning() -> None:
        while plannings:
            plannings.pop().background.stop()

    def plan(arguments: dict[str, Any]) -> Any:
        text = spec_from_form(data, _read_form(arguments), language)
        stop_planning()
        plannings.append(Planning(data.folder / "draft.toml", text))
        plannings[0].begin()
        return current_state()

    def current_state() -> Any:
        if not plannings:
            return {"refused": "Nothing is planned yet."}
        state = plannings[0].state
        charts = (
            []
            if state.plan is None or not state.ready
            else _invented_charts(state.plan, state.draft.level, catalogue)
        )
        names = [row.name(catalogue) for row in state.draft.rows]
        return {
            **state_json(state),
            "names": names,
            "charts": charts,
            "text": state.draft.text,
            "ended": not state.doing,
        }

    def save(arguments: dict[str, Any]) -> Any:
        name = str(arguments.get("name", ""))
        text = spec_from_form(data, _read_form(arguments), language, in_sql=True)
        path = save_spec(data.folder / ".toml", "", name, text)
        has_workload = "\n[[workload]]" in text
        return {
            "done": catalogue.say("st_saved", file=str(path)),
            "commands": list_commands(path, in_sql=not has_workload),
            "name": name,
            "asked": has_workload,
        }

    def open_planning(arguments: dict[str, Any]) -> Any:
        path = data.folder / Path(str(arguments.get("name", ""))).name
        if path.suffix != ".toml" or not path.is_file():
            raise InputError("Save the spec first.")
        return show_page(planning_page(path))

    return Page(
        routes=[
            page_route(
                "/",
                lambda: render_page(
                    "beginning.html", t=catalogue, data=data, **_template_choices(data, catalogue)
                ),
            ),
            *asset_routes("beginning.js", charts=True),
            page_route("/view", current_state, JSONResponse),
            *(
                action_route(f"/{name}", handle, catalogue)
                for name, handle in (("plan", plan), ("save", save), ("further", open_planning))
            ),
            action_route(
                "/language",
                lambda arguments: show_page(form_page(data, show_page, _read_language(arguments))),
                catalogue,
            ),
        ],
        close=stop_planning,
    )


def _read_form(arguments: Mapping[str, Any]) -> Form:
    form = arguments.get("form")
    if not isinstance(form, dict) or not all(isinstance(text, str) for text in form.values()):
        raise InputError("A form must be an object of texts.")
    return {key: text.strip() for key, text in form.items()}


def _read_language(arguments: Mapping[str, Any]) -> str:
    return one_of("the language", arguments.get("language"), LANGUAGES)


def _template_choices(data: Data, catalogue: Texts) -> dict[str, Any]:
    """Return what the template needs: the choices of the forms, and what names and types of columns suggest."""
    return {
        "forms": [(form, catalogue.say(f"be_{form}")) for form in _COLUMNS],
        "suggested": {
            number: FORMS[column.kind] for number, column in enumerate(data.columns) if column.kind
        },
        "person": next(
            (number for number, column in enumerate(data.columns) if column.names_person), None
        ),
        "candidates": catalogue.listed([*data.suggested.candidates]),
        "asked": [(kind, catalogue.say(f"be_ask_{kind}")) for kind in _QUESTIONS],
        "is_text": not any(column.typed for column in data.columns),
        "weighted": WEIGHTED,
        "periods": [(period, catalogue.say(f"by_{period}")) for period in PERIODS],
        "files": sorted(
            file.name
            for file in data.folder.iterdir()
            if file.suffix.lower() == ".csv" and file.name != data.name
        ),
        "rows": _INVENTED_ROWS,
        "numbers": NUMBERS,
        "days": DAYS,
        "name": f"{data.name.split('.')[0]}.toml",
    }


def _invented_charts(plan: Plan, level: float, catalogue: Texts) -> list[dict[str, Any]]:
    """Return charts of the first tables with invented counts and the promised margins; counts are a hill over many values, else steps."""
    promised = table_margins(plan, level)
    tables = [
        product
        for product in plan.workload
        if product.attributes and product.rows <= MOST_CELLS and not product.of_values
    ]
    charts = []
    for product in [product for product in tables[:_MOST_DRAWN] if product.table_key in promised]:
        counts = np.array(float(_INVENTED_ROWS))
        for name, queries in zip(product.attributes, product.query_sets, strict=True):
            kind = product.domain.kind(name)
            cells = np.arange(kind.size)
            shares = (
                np.exp(-(((cells / kind.size - 0.4) / 0.25) ** 2))
                if kind.size > 12
                else 1.0 + (3 * cells + 2) % 5
            )
            counts = np.multiply.outer(
                counts, apply(queries.operator(name, kind), shares / shares.sum())
            )
        margin = promised[product.table_key].typical
        picture = picture_of(
            product,
            product.labels,
            counts.round(),
            counts.round() - margin,
            counts.round() + margin,
            plan.privacy,
            catalogue,
        )
        alt = catalogue.say("be_invented", name=picture.name, margin=catalogue.error(margin))
        charts.append(chart_json(vega_lite(picture, 2000), catalogue, alt))
    return charts
