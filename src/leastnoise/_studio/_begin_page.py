"""The pages to begin with: which data, then what columns may hold, what to publish, how exact or how private; from there to a spec as TOML.

They know names and types of columns alone.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.responses import JSONResponse, Response

from leastnoise._charts import spoken, vega_lite
from leastnoise._check import InputError, exact, message, one_of
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._linop import apply
from leastnoise._plan import Plan
from leastnoise._release import LANGUAGES, Texts, picture_of, texts
from leastnoise._session import CSV, DatabaseTable, columns
from leastnoise._spec import SourceColumn, parse_spec, source_columns
from leastnoise._studio._draft import lines, save
from leastnoise._studio._explore_page import MOST_CELLS, vega_script
from leastnoise._studio._pages import Page, action, asset, get, shown
from leastnoise._studio._planning import Planning, margins, planning_page, view

Form = Mapping[str, str]
"""The fields of the page by name, empty where nothing is filled in or ticked: ``c3.low`` is of column 3, ``a1.what`` of question 1."""
FORMS = {"text": "list", "whole": "whole", "number": "number", "date": "dates", "truth": "truth"}
"""The form that is suggested for each kind of column."""
ASKED = ("counts", "top", "means", "median", "quartiles", "cdf", "sums")
WEIGHTED = ("counts", "top", "means", "sums")
"""What rows may count for as often as their weight says."""
PERIODS = ("year", "quarter", "month", "week", "day", "hour", "weekday")
NUMBERS = {"1234.56": ("", ""), "1234,56": (",", ""), "1.234,56": (",", "."), "1,234.56": ("", ",")}
"""How a file of texts may write numbers: the marks of decimals and of thousands, where they are not those of specs."""
DAYS = {"2025-12-31": "", "31.12.2025": "%d.%m.%Y", "31/12/2025": "%d/%m/%Y", "12/31/2025": "%m/%d/%Y"}
_SHARES = {"median": ["0.5"], "quartiles": ["0.25", "0.5", "0.75"]}
_HEAD = """\
# A spec for leastnoise, filled in on the page of `leastnoise studio` from names and types of columns: it holds no value of the data.

"""
_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_NO_STEPS = "The step of {name} must divide the way from {low} to {high} into whole steps; got {step}."
_TOO_MANY = "{name} would have {count} values here, and at most {most} are allowed. Take wider steps, or numbers in steps of a width."
_MOST_DRAWN = 4
_MOST_VALUES = 10**6
_INVENTED_ROWS = 10_000
Lead = Callable[[Page], Mapping[str, str]]
"""Shows another page; what the browser is told, which then asks for it."""


@dataclass(frozen=True, slots=True)
class Data:
    """Where the data are, and what is known of them without a look at a value."""

    source: Path | DatabaseTable
    layout: Mapping[str, str]
    columns: tuple[SourceColumn, ...]

    @property
    def name(self) -> str:
        """How pages call them."""
        return self.source.table if isinstance(self.source, DatabaseTable) else self.source.name

    @property
    def is_text(self) -> bool:
        """Whether numbers and days are texts, of which the form has to be said."""
        return not any(column.typed for column in self.columns)

    @property
    def folder(self) -> Path:
        """Where the spec will be: beside a file, or in the current folder."""
        return Path.cwd() if isinstance(self.source, DatabaseTable) else self.source.absolute().parent

    @property
    def table(self) -> dict[str, Any]:
        """The part ``[source]`` of a spec."""
        if isinstance(self.source, DatabaseTable):
            return {"table": self.source.table, "connection": self.source.connection}
        return {"path": self.source.name, **self.layout}


def looked_at(source: Path | DatabaseTable, layout: Mapping[str, str]) -> Data:
    """Names and types of the columns of some data; no value is read."""
    table = CSV(source, layout.get("delimiter"), layout.get("encoding", "utf-8")) if layout and isinstance(source, Path) else source
    return Data(source, layout, source_columns(columns(table)))


def spec_of(data: Data, form: Form, language: str, *, in_sql: bool = False) -> str:
    """The text of the spec that a form says, checked; numbers have a comma where the language writes one.

    Where SQL may ask in place of the form, nothing has to be asked: the spec says then what all columns may hold.
    """
    form = {key: _pointed(key, text) if language == "de" else text for key, text in form.items()}
    questions = {int(part.group(1)) for key in form if (part := re.fullmatch(r"a(\d{1,3})\.what", key)) and form[key]}
    names = {}  # of attributes: as the column, with the unit of measure behind it
    for number, column in enumerate(data.columns):
        if kind := form.get(f"c{number}.kind"):
            unit = form.get(f"c{number}.unit", "") if kind == "number" and questions else ""  # SQL calls a column by its name
            names[number] = f"{column.attribute} ({unit})" if unit else column.attribute
    asked = [_asked(question, names, form) for question in sorted(questions)]
    if not asked and (not in_sql or form.get("how") == "within"):
        raise InputError("Nothing is asked yet: choose what to publish.")
    within = form.get("margin", "") if form.get("how") == "within" else ""
    if form.get("how") == "within" and not within:
        raise InputError("Say how far a number may be from the truth, such as 500; or give a budget.")
    used = {name for entry in asked for name in _attributes(entry)} if asked else {*names.values()}
    numbers = {name: number for number, name in names.items()}
    measured = {entry["means"]["of"] if "means" in entry else entry["sum"] for entry in asked if "means" in entry or "sum" in entry}
    if not asked:
        measured = {name for number, name in names.items() if form[f"c{number}.kind"] in ("whole", "number")}
    weights = {entry["weighted_by"] for entry in asked if "weighted_by" in entry}
    unknown = any(form[f"c{numbers[name]}.kind"] == "unknown" for name in used)
    table: dict[str, Any] = {"source": {**data.table, **_layout(form)}, "privacy": _privacy(data, form, unknown=unknown)}
    described = used or measured or weights  # a domain has an attribute, though none is asked about
    table["domain"] = {name: _attribute(data.columns[number], number, name, form) for number, name in names.items() if name in described}
    for name in sorted(measured | weights):
        column, said = data.columns[numbers[name]], {field: form.get(f"c{numbers[name]}.{field}", "") for field in ("low", "high", "step")}
        multiples = {"unit": said["step"]} if name in weights and form[f"c{numbers[name]}.kind"] == "number" else {}
        table.setdefault("measures", {})[name] = {"column": column.name, "clip": [_number(said["low"]), _number(said["high"])], **multiples}
    if asked:
        table["workload"] = _within(within, asked, table.get("measures", {})) if within else asked
    table["plan"] = {"guard": "1/100"}
    output = {"title": form.get("title", ""), "source": form.get("source", ""), "language": "" if language == "en" else language}
    table |= {"output": {key: text for key, text in output.items() if text}} if any(output.values()) else {}
    text = _HEAD + _written(table)
    parse_spec(text if asked else f"{text}\n[[workload]]\nqueries = {{}}\n", data.folder)
    return text


def _layout(form: Form) -> dict[str, str]:
    """What is said of a file of texts."""
    decimal, thousands = NUMBERS[one_of("how numbers are written", form.get("numbers") or "1234.56", NUMBERS)]
    made = {"encoding": form.get("encoding", "").replace("utf-8", ""), "decimal": decimal, "thousands": thousands}
    return {key: text for key, text in made.items() if text}


def _pointed(key: str, text: str) -> str:
    """A number with a decimal point, as specs have it."""
    if key.rpartition(".")[2] not in ("low", "high", "step", "epsilon", "margin", "delta", "size", "max_rows", "most"):
        return text
    if re.search(r"\.\d{3}(\D|$)", text):
        raise InputError(message("A number must be written without separators of thousands; got {text}.", text=text))
    return text.replace(",", ".")


def _asked(question: int, names: Mapping[int, str], form: Form) -> dict[str, Any]:
    """One part of the workload."""
    kind, groups = one_of("what is published", form[f"a{question}.what"], ASKED), _groups(question, names, form)

    def column(field: str, words: str) -> str:
        number = form.get(f"a{question}.{field}", "")
        if not number.isdecimal() or int(number) not in names:
            raise InputError(message("{what} must be of a column of numbers that is published; choose one.", what=words))
        return names[int(number)]

    weighted = {}
    if kind in WEIGHTED and form.get(f"a{question}.weight"):
        weighted = {"weighted_by": column("weight", "Weights")}
    if kind in ("counts", "top"):
        if kind == "top" and len(groups) != 1:
            raise InputError("The largest groups must be of one column; tick one.")
        return {"queries": groups, **weighted}
    name = column("of", "Means, medians, distributions and sums")
    if kind == "sums":
        return {"queries": groups, "sum": name, **weighted}
    asked: dict[str, Any] = {"of": name, "by": [key if sets == "identity" else {key: sets} for key, sets in groups.items()]}
    more = {"size": form[f"a{question}.size"], **weighted} if form.get(f"a{question}.size") else weighted
    return {"quantiles": {**asked, "at": _SHARES[kind]}, **more} if kind in _SHARES else {kind: asked, **more}


def _groups(question: int, names: Mapping[int, str], form: Form) -> dict[str, Any]:
    """The columns that are ticked, each with its values or with the groups of a level."""
    groups: dict[str, Any] = {}
    for number, name in names.items():
        ways = [way for way in ("cells", "group", "level") if form.get(f"a{question}.by.{number}.{way}")]
        if len(ways) > 1:
            raise InputError(message("A table must have the values of {name} or their groups, not both; ask for two tables.", name=name))
        if ways:
            level = form.get(f"c{number}.level", "") if ways == ["level"] else "group"
            groups[name] = "identity" if ways == ["cells"] else {"level": level}
    return groups


def _within(margin: str, asked: Sequence[Mapping[str, Any]], measures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is asked with its targets: of statistics the tables that they follow from have them, a sum as many times as a row adds."""
    made = [{**entry, "margin": margin} if "queries" in entry else dict(entry) for entry in asked]
    for kind, said, entry in [(kind, entry[kind], entry) for entry in asked for kind in ("means", "quantiles", "cdf") if kind in entry]:
        of, groups = said["of"], {name: "identity" for name in said["by"] if isinstance(name, str)}
        groups |= {name: sets for part in said["by"] if not isinstance(part, str) for name, sets in part.items()}
        if kind != "means":
            made.append({"queries": {**groups, of: "prefix"}, "margin": margin})
            continue
        weighted = {"weighted_by": entry["weighted_by"]} if "weighted_by" in entry else {}
        made.append({"queries": groups, "count": of, **weighted, "margin": margin})
        if {"queries": groups, "sum": of, **weighted, "margin": margin} not in made:
            most = max(abs(exact(message("a bound of {name}", name=of), end)) for end in measures[of]["clip"])
            made.append({"queries": groups, "sum": of, **weighted, "margin": str(exact("the distance", margin) * most)})
    return made


def _attributes(entry: Mapping[str, Any]) -> list[str]:
    """The attributes that a part of the workload asks about."""
    if "queries" in entry:
        return list(entry["queries"])
    kind, asked = next(iter(entry.items()))
    by = [name for part in asked["by"] for name in ([part] if isinstance(part, str) else part)]
    return by if kind == "means" else [asked["of"], *by]


def _privacy(data: Data, form: Form, *, unknown: bool) -> dict[str, Any]:
    privacy: dict[str, Any] = {"epsilon": "least" if form.get("how") == "within" else form.get("epsilon", "")}
    if unknown:  # categories that nobody can list are found under a delta
        privacy["delta"] = form.get("delta", "")
    unit = form.get("unit", "")
    if unit and not (unit.isdecimal() and int(unit) < len(data.columns)):
        raise InputError("What is protected must be each row, or each value of a column; choose one.")
    privacy["unit"] = {"column": data.columns[int(unit)].name, "max_rows": _number(form.get("max_rows", ""))} if unit else "row"
    return privacy


def _attribute(column: SourceColumn, number: int, name: str, form: Form) -> dict[str, Any]:
    """The part ``[domain.NAME]`` of a column."""

    def said(field: str) -> str:
        return form.get(f"c{number}.{field}", "").strip()

    kind = said("kind")
    table: dict[str, Any] = {} if name == column.name else {"column": column.name}
    if kind == "list":
        codes = [code.strip() for code in said("list").splitlines() if code.strip()]
        table["categories"] = [*dict.fromkeys(map(_number, codes) if column.kind == "whole" else codes)]
    elif kind == "file":
        table["categories"] = {"file": said("file"), "column": said("file_column")}
    elif kind == "truth":
        table["categories"] = [True, False]
    elif kind == "whole":
        low, high = table["integers"] = [_number(said("low")), _number(said("high"))]
        _few(name, high - low if isinstance(low, int) and isinstance(high, int) else 0)
    elif kind == "number":
        table["bins"] = _bins(name, said("low"), said("high"), said("step"))
    elif kind == "dates":
        written = DAYS[one_of("how days are written", form.get("days") or "2025-12-31", DAYS)]
        table["dates"] = {"from": said("from"), "to": said("to"), "by": said("by"), **({"format": written} if written else {})}
    elif kind == "unknown":
        table["unknown"] = {"most": _number(said("most"))}
    else:
        one_of(message("what {name} may hold", name=name), kind, ("list", "file", *FORMS.values(), "unknown"))
    levels: dict[str, Any] = {}
    if said("edges") and kind in ("whole", "number"):
        levels["group"] = {"edges": [_number(edge) for edge in re.split(r"[\s,;]+", said("edges"))]}
    if said("level") and kind in ("list", "file", "whole"):
        key = said("level_key") or said("file_column")
        levels[said("level")] = {"file": said("level_file") or said("file"), "key": key, "value": said("level_value") or said("level")}
    # without it a row whose text is not found would be in no table
    more = {"outside": "other", "null": "other"} if said("other") or kind == "unknown" else {}
    return {**table, **more, **({"levels": levels} if levels else {})}


def _bins(name: str, low: str, high: str, step: str) -> dict[str, Any]:
    ends = [exact(message("a bound or the step of {name}", name=name), text) for text in (low, high, step)]
    count = (ends[1] - ends[0]) / ends[2] if ends[2] > 0 else Fraction(0)
    if count.denominator != 1 or count < 1:
        raise InputError(message(_NO_STEPS, name=name, low=low, high=high, step=step))
    _few(name, int(count))
    return {"low": _number(low), "high": _number(high), "count": int(count)}


def _few(name: str, count: int) -> None:
    """Refuse more values than a page can show the groups of while somebody waits."""
    if count > _MOST_VALUES:
        raise InputError(message(_TOO_MANY, name=name, count=count, most=_MOST_VALUES))


def _number(text: str) -> int | str:
    """A whole number, or the text as it is, which is exact."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text.strip()) else text.strip()


def _written(table: Mapping[str, Any]) -> str:
    """TOML with a line a key."""
    import tomlkit

    document = tomlkit.document()
    for part, entry in table.items():
        if isinstance(entry, list):
            document[part] = tomlkit.aot()
            for row in entry:
                document[part].append(lines(row))
        elif part in ("domain", "measures"):
            document[part] = tomlkit.table(is_super_table=True)
            for name, row in entry.items():
                document[part][name] = lines(row)
        else:
            document[part] = lines(entry)
    return re.sub(r"(?<!\n)\n\[\[", "\n\n[[", tomlkit.dumps(document))


def commands(path: Path, *, in_sql: bool = False) -> Sequence[str]:
    """What releases by a spec, as it is typed where the studio was started; of one that asks nothing, with a file of questions."""
    import shlex

    shown = os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    asked = f"questions.sql --spec {shlex.quote(shown)}" if in_sql else shlex.quote(shown)
    return [f"leastnoise plan {asked}", f"leastnoise release {asked} --out {shlex.quote(path.stem)}-release"]


def choosing_page(lead: Lead, language: str = "en") -> Page:
    """The page that asks which data: a file, or a table of a database."""

    def choose(asked: dict[str, Any]) -> Any:
        form = _form(asked)
        if form.get("table") or form.get("connection"):
            source: Path | DatabaseTable = DatabaseTable(form.get("table", ""), form.get("connection", ""))
        elif form.get("path"):
            source = Path(form["path"]).expanduser()
        else:
            raise InputError("Name a file, or a table and its connection.")
        layout = {key: form[key] for key in ("delimiter", "encoding") if form.get(key)}
        return lead(beginning_page(looked_at(source, layout), lead, language))

    def files() -> list[str]:
        return sorted(file.name for file in Path.cwd().iterdir() if file.name.lower().endswith(_ENDINGS))

    return Page(
        routes=[
            get("/", lambda: shown("choosing.html", t=texts(language), files=files(), folder=Path.cwd())),
            *(asset(name) for name in ("studio.css", "asking.js", "choosing.js")),
            action("/choose", choose, texts(language)),
            action("/language", lambda asked: lead(choosing_page(lead, _language(asked))), texts(language)),
        ]
    )


def beginning_page(data: Data, lead: Lead, language: str = "en") -> Page:
    """The page that makes a spec of some data from names and types of their columns."""
    said = texts(language)
    planned: list[Planning] = []

    def end() -> None:
        while planned:
            planned.pop().close()

    def plan(asked: dict[str, Any]) -> Any:
        text = spec_of(data, _form(asked), language)
        end()
        planned.append(Planning(data.folder / "draft.toml", text))
        planned[0].begin()
        return seen()

    def seen() -> Any:
        if not planned:
            return {"refused": "Nothing is planned yet."}
        now = planned[0].seen
        charts = [] if now.plan is None or not now.ready else _invented(now.plan, now.draft.level, said)
        names = [row.name(said) for row in now.draft.rows]
        return {**view(now), "names": names, "charts": charts, "text": now.draft.text, "ended": not now.doing}

    def write(asked: dict[str, Any]) -> Any:
        name = str(asked.get("name", ""))
        text = spec_of(data, _form(asked), language, in_sql=True)
        path = save(data.folder / ".toml", "", name, text)
        asks = "\n[[workload]]" in text
        return {"done": said.say("st_saved", file=str(path)), "commands": commands(path, in_sql=not asks), "name": name, "asked": asks}

    def further(asked: dict[str, Any]) -> Any:
        path = data.folder / Path(str(asked.get("name", ""))).name
        if path.suffix != ".toml" or not path.is_file():
            raise InputError("Save the spec first.")
        return lead(planning_page(path))

    return Page(
        routes=[
            get("/", lambda: shown("beginning.html", t=said, data=data, **_choices(data, said))),
            *(asset(name) for name in ("studio.css", "asking.js", "beginning.js")),
            get("/vega.js", vega_script, partial(Response, media_type="text/javascript")),
            get("/view", seen, JSONResponse),
            action("/plan", plan, said),
            action("/save", write, said),
            action("/further", further, said),
            action("/language", lambda asked: lead(beginning_page(data, lead, _language(asked))), said),
        ],
        close=end,
    )


def _form(asked: Mapping[str, Any]) -> Form:
    form = asked.get("form")
    if not isinstance(form, dict) or not all(isinstance(text, str) for text in form.values()):
        raise InputError("A form must be an object of texts.")
    return {key: text.strip() for key, text in form.items()}


def _language(asked: Mapping[str, Any]) -> str:
    return one_of("the language", asked.get("language"), LANGUAGES)


def _choices(data: Data, said: Texts) -> dict[str, Any]:
    """What the forms offer; what the name and the type of a column suggest is marked so."""
    forms = ["list", "file", "whole", "number", "dates", "unknown", "truth"]
    return {
        "forms": [(form, said.say(f"be_{form}")) for form in forms],
        "suggested": {number: FORMS[column.kind] for number, column in enumerate(data.columns) if column.kind},
        "person": next((number for number, column in enumerate(data.columns) if column.names_person), None),
        "asked": [(kind, said.say(f"be_ask_{kind}")) for kind in ASKED],
        "weighted": WEIGHTED,
        "periods": [(period, said.say(f"by_{period}")) for period in PERIODS],
        "files": sorted(file.name for file in data.folder.iterdir() if file.suffix.lower() == ".csv" and file.name != data.name),
        "rows": _INVENTED_ROWS,
        "numbers": NUMBERS,
        "days": DAYS,
        "name": f"{data.name.split('.')[0]}.toml",
    }


def _invented(plan: Plan, level: float, said: Texts) -> list[dict[str, Any]]:
    """The first tables of a plan with invented counts and the margins that the plan promises."""
    promised = margins(plan, level)
    tables = [product for product in plan.workload if product.attributes and product.rows <= MOST_CELLS and not product.of_values]
    made = []
    for product in tables[:_MOST_DRAWN]:
        if product.question not in promised:
            continue
        answer = np.array(float(_INVENTED_ROWS))
        for name, queries in zip(product.attributes, product.query_sets, strict=True):
            along = apply(queries.operator(name, product.domain.kind(name)), _shape(product.domain, name))
            answer = np.multiply.outer(answer, along)
        margin = promised[product.question].typical
        picture = picture_of(product, product.labels, answer.round(), answer.round() - margin, answer.round() + margin, plan.privacy, said)
        words = said.say("be_invented", name=picture.name, margin=said.error(margin))
        chart = vega_lite(picture, 2000)
        made.append({"chart": chart and spoken(chart, said.language), "alt": words})
    return made


def _shape(domain: Domain, name: str) -> FloatArray:
    """Invented shares of the values of an attribute: a hill over many, uneven steps over few."""
    size = domain.kind(name).size
    cells = np.arange(size)
    shares = np.exp(-(((cells / size - 0.4) / 0.25) ** 2)) if size > 12 else 1.0 + (3 * cells + 2) % 5
    return np.asarray(shares / shares.sum(), dtype=np.float64)
