"""The pages to begin with: which data, then what their columns may hold, what to publish, how exact or how private, and the spec."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.responses import JSONResponse, Response

from leastnoise._charts import vega_lite
from leastnoise._check import InputError, one_of
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._linop import apply
from leastnoise._plan import Plan
from leastnoise._release import LANGUAGES, Texts, picture_of, texts
from leastnoise._session import DatabaseTable
from leastnoise._studio._beginning import ASKED, FORMS, PERIODS, Data, Form, commands, looked_at, spec_of
from leastnoise._studio._draft import save
from leastnoise._studio._explore_page import MOST_CELLS, drawn, vega_script
from leastnoise._studio._pages import Page, action, asset, get, shown
from leastnoise._studio._plan_page import planning_page, view
from leastnoise._studio._planning import Planning, margins

_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_MOST_DRAWN = 4
_INVENTED_ROWS = 10_000
Lead = Callable[[Page], Mapping[str, str]]
"""Shows another page; what the browser is told, which then asks for it."""


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
        return sorted(place.name for place in Path.cwd().iterdir() if place.name.lower().endswith(_ENDINGS))

    return Page(
        routes=[
            get("/", lambda: shown("choosing.html", t=texts(language), files=files(), folder=Path.cwd())),
            *(asset(name) for name in ("studio.css", "asking.js", "choosing.js")),
            action("/choose", choose),
            action("/language", lambda asked: lead(choosing_page(lead, _language(asked)))),
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
        names = [row.name for row in now.draft.rows]
        return {**view(now), "names": names, "charts": charts, "text": now.draft.text, "ended": not now.doing}

    def write(asked: dict[str, Any]) -> Any:
        name = str(asked.get("name", ""))
        path = save(data.folder / ".toml", "", name, spec_of(data, _form(asked), language))
        return {"done": said.say("st_saved", file=str(path)), "commands": commands(path), "name": name}

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
            action("/plan", plan),
            action("/save", write),
            action("/further", further),
            action("/language", lambda asked: lead(beginning_page(data, lead, _language(asked)))),
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
        "periods": [(period, said.say(f"by_{period}")) for period in PERIODS],
        "files": sorted(place.name for place in data.folder.iterdir() if place.suffix.lower() == ".csv" and place.name != data.name),
        "rows": _INVENTED_ROWS,
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
        made.append({"chart": drawn(vega_lite(picture, 2000), said), "alt": words})
    return made


def _shape(domain: Domain, name: str) -> FloatArray:
    """Invented shares of the values of an attribute: a hill over many, uneven steps over few."""
    size = domain.kind(name).size
    places = np.arange(size)
    shares = np.exp(-(((places / size - 0.4) / 0.25) ** 2)) if size > 12 else 1.0 + (3 * places + 2) % 5
    return np.asarray(shares / shares.sum(), dtype=np.float64)
