"""The report: one self-contained page for readers of a release, without scripts, fonts or pictures from elsewhere."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from leastnoise._accounting import readable
from leastnoise._accuracy import lower_bound
from leastnoise._plan import Plan
from leastnoise._release import _data_aware as aware
from leastnoise._release import _words as words
from leastnoise._release._charts import chart, chart_kind, error, number
from leastnoise._release._files import TableEntry
from leastnoise._release._manifest import versions
from leastnoise._release._release import Release
from leastnoise._release._style import STYLE
from leastnoise._release._tables import Table
from leastnoise._workload import Product, Workload

MOST_ROWS = 40
MOST_CHARTS = 12
MOST_HEATMAPS = 3  # for counts, and for every measure
MOST_SCANNED = 500
# A table's own bound needs the eigenvalues of a matrix of this size, which should not take longer than the release.
_MOST_CELLS_OF_A_BOUND = 1024
_HATCH = (
    '<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs><pattern id="hatch" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="currentColor" '
    'stroke-opacity=".45" stroke-width="1"/></pattern></defs></svg>'
)


def report(release: Release, entries: Sequence[TableEntry], *, written: datetime | None = None) -> str:
    """The report as one HTML text.

    Args:
        release: the release.
        entries: the index of its tables, as `write_answers` gives it.
        written: when; None for now.

    Returns:
        A page that needs nothing else: style and charts are inside, and there are no links to the network. Every label is escaped.
    """
    when = (written or datetime.now(UTC)).astimezone(UTC)
    title = _title(release)
    sections = [
        _head(release, entries, title, when),
        _promise(release),
        _spent(release),
        _errors(release, entries),
        _charts(release),
        _reading(release),
        _rows(release),
        _files(release, entries),
        _footer(release),
    ]
    warning = "" if release.private else f'<p class="warning" role="alert">{escape(words.NOT_PRIVATE)}</p>\n'
    mark = "" if release.private else "NOT PRIVATE: "
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(mark + title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{_HATCH}\n<main>\n{warning}"
        + "\n".join(sections)
        + "\n</main>\n</body>\n</html>\n"
    )


def _title(release: Release) -> str:
    asked = {name for product in release.workload for name in product.attributes}
    names = [name for name in release.workload.domain.names if name in asked]
    tables = len(release.tables)
    start = ("A private release of " if release.private else "A test release of ") + ("one table" if tables == 1 else f"{tables:,} tables")
    if not names:
        return start
    shown = names if len(names) <= 5 else [*names[:4], f"{len(names) - 4} more attributes"]
    return f"{start} on {', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else f"{start} on {shown[0]}"


def _head(release: Release, entries: Sequence[TableEntry], title: str, when: datetime) -> str:
    plan = release.plan
    answers = sum(entry.answers for entry in entries)
    counts = [entry for entry in entries if entry.measure is None]
    typical = (
        math.sqrt(sum(entry.answers * entry.rmse**2 for entry in counts) / sum(entry.answers for entry in counts)) if counts else math.nan
    )
    facts = [
        ("Privacy budget", words.budget_words(plan.privacy), words.definition(plan.privacy)[0]),
        ("Protected", "one row" if plan.privacy.unit_column is None else f"one {plan.privacy.unit_column}", _unit_note(release)),
    ]
    if counts:
        facts.append(("Typical error of a count", error(typical), "standard error, over all counts"))
    promise = plan.promise
    if promise is not None and promise.lower_bound > 0:
        ratio = math.sqrt(promise.total_squared_error / promise.lower_bound)
        facts.append(("Against the least possible", f"{ratio:.2f} times", "error over its proven lower bound"))
    boxes = "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}<small>{escape(c)}</small></dd></div>" for a, b, c in facts)
    kicker = "Differentially private statistics" if release.private else "For tests only, not private"
    sums = sorted({entry.measure for entry in entries if entry.measure is not None})
    summed = f" Sums are of {escape(', '.join(sums))}." if sums else ""
    return (
        f'<header>\n<p class="kicker">{kicker}</p>\n<h1>{escape(title)}</h1>\n'
        f'<p class="lead">{answers:,} {"answer" if answers == 1 else "answers"}, each with its error bar. Noise was added on purpose, so '
        f"that nobody in the data can be singled out; how much, and what that means for every number, is said on this page.{summed}</p>\n"
        f"{_cut(release)}"
        f'<p class="small">Written on {when:%d %B %Y} (UTC).</p>\n<dl class="facts">{boxes}</dl>\n</header>'
    )


def _cut(release: Release) -> str:
    cut = words.cut_words(release.plan.privacy)
    return f'<p class="lead"><strong>{escape(cut)}</strong></p>\n' if cut else ""


def _unit_note(release: Release) -> str:
    privacy = release.plan.privacy
    neighbours = "added or removed" if privacy.neighbours == "add_remove" else "replaced"
    return neighbours if privacy.unit_column is None else f"at most {privacy.max_rows} rows each, {neighbours}"


def _promise(release: Release) -> str:
    return (
        f'<section>\n<h2>The promise</h2>\n<p class="promise">{escape(words.promise(release.plan.privacy))}</p>\n'
        "<p>This holds whatever is done with the answers afterwards, and whatever other data anybody has. It does not depend on keeping "
        "the method secret: the plan, with every noise scale, is part of the release.</p>\n</section>"
    )


def _spent(release: Release) -> str:
    plan = release.plan
    receipt = ", ".join(f"{name}: {value}" for name, value in {"id": release.observation.receipt, **release.receipt}.items() if value)
    pairs = [
        ("Budget", f"{words.budget_words(plan.privacy)} ({words.definition(plan.privacy)[0]})"),
        ("Cost of the plan", f"{words.cost_words(words.cost_of(plan))}{_computed(plan)}"),
        ("Neighbours", f"{words.change(plan.privacy)} ({plan.privacy.neighbours})"),
        ("Noise", words.NOISES[plan.noise]),
        (
            "Strategy",
            f"{plan.strategy}: {_done(plan)}",
        ),
        ("Receipt", receipt or "none: nothing was paid for this release"),
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<section>\n<h2>What was spent</h2>\n<dl class="spent">{rows}</dl>\n</section>'


def _computed(plan: Plan) -> str:
    return ", computed from its integer queries" if aware.facts_of(plan) is None else ", the private choices with it"


def _done(plan: Plan) -> str:
    if aware.facts_of(plan) is not None:
        return aware.regime_words(plan)
    return f"{len(plan.blocks):,} measured {'table' if len(plan.blocks) == 1 else 'tables'}, answers by least squares"


def _errors(release: Release, entries: Sequence[TableEntry]) -> str:
    plan = release.plan
    shown = entries[:MOST_ROWS]
    total = sum(_contribution(product, entry) for product, entry in zip(release.workload, entries, strict=True))
    rows, ordinary = [], aware.facts_of(plan) is None
    for product, entry in zip(release.workload.products[: len(shown)], shown, strict=True):
        share = _contribution(product, entry) / total if total > 0 else 0.0
        alone = _alone(release, product) if ordinary else None
        cells = [
            f"<td>{escape(entry.query)}</td><td>{escape(entry.name)}</td>",
            *(
                f'<td class="n">{text}</td>'
                for text in (
                    f"{entry.answers:,}",
                    error(entry.rmse),
                    error(entry.largest_std),
                    f"{100 * share:.1f}%",
                    "" if alone is None else error(alone),
                )
            ),
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(
        f'<th scope="col"{kind}>{text}</th>'
        for text, kind in (
            ("Id", ""),
            ("Table", ""),
            ("Answers", ' class="n"'),
            ("Typical error", ' class="n"'),
            ("Largest error", ' class="n"'),
            ("Share of the total", ' class="n"'),
            ("Least possible alone" if ordinary else "", ' class="n"'),
        )
    )
    large = "".join(f'<p class="note">{escape(words.large_words(release, product))}</p>' for product in release.large)
    left_out = large + (
        ""
        if len(entries) <= MOST_ROWS
        else f'<p class="note">The first {MOST_ROWS} of {len(entries):,} tables; all are in <code>tables.csv</code>.</p>'
    )
    promise, summary = plan.promise, ""
    if promise is not None and promise.lower_bound > 0:
        squared = promise.total_squared_error / promise.lower_bound
        summary = (
            "<p>The plan was chosen to make the weighted total of all squared errors small: it is "
            f"{_large(promise.total_squared_error)}. No unbiased plan with this kind of noise can go below {_large(promise.lower_bound)}, "
            f"so the errors here are at most {math.sqrt(squared):.2f} times the least possible.</p>"
        )
    if not ordinary:
        return (
            f"<section>\n<h2>How exact the answers are</h2>\n<p>{escape(aware.ERRORS)}</p>\n"
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>\n{left_out}</section>'
        )
    return (
        "<section>\n<h2>How exact the answers are</h2>\n<p>All this was known before the data were touched. The typical error is "
        f"the root mean square of the standard errors of a table; a sum's is in its own unit.</p>\n{summary}\n"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>\n{left_out}'
        '<p class="note">Share of the total: of the weighted squared error. Least possible alone: a lower bound on the typical error '
        "that this table would have if the whole budget were spent on it and nothing else were asked.</p>\n</section>"
    )


def _large(value: float) -> str:
    short = float(f"{value:.4g}")
    return f"{short:,.0f}" if 1000 <= short < 1e15 else f"{short:g}"


def _contribution(product: Product, entry: TableEntry) -> float:
    """Importance times the sum of the variances, in squared rows or multiples of the unit."""
    unit = 1.0 if product.measure is None else float(product.domain.measures[product.measure].unit)
    return product.importance * entry.answers * (entry.rmse / unit) ** 2


def _alone(release: Release, product: Product) -> float | None:
    if any(operator.size > _MOST_CELLS_OF_A_BOUND for operator in product.operators):
        return None
    unit = 1.0 if product.measure is None else float(product.domain.measures[product.measure].unit)
    bound = lower_bound(Workload(product.domain, (product,)), release.plan.privacy, release.plan.noise)
    return math.sqrt(bound / (product.importance * product.rows)) * unit


def _charts(release: Release) -> str:
    chosen = list(_drawable(release))
    if not chosen:
        return (
            "<section>\n<h2>The answers</h2>\n<p>No table is small enough to be drawn; all are in the folder <code>answers</code>."
            "</p>\n</section>"
        )
    figures = [_figure(release, release.tables[place]) for place in chosen]
    rest = len(release.tables) - len(chosen)
    note = (
        ""
        if not rest
        else f'<p class="note">{rest:,} more {"table is" if rest == 1 else "tables are"} not drawn; see <code>answers</code>.</p>'
    )
    return f"<section>\n<h2>The answers</h2>\n{''.join(figures)}{note}\n</section>"


def _drawable(release: Release) -> Iterable[int]:
    """The first tables that a chart suits, few of them shaded grids."""
    charts, grids = 0, Counter[str | None]()
    for place, product in enumerate(release.workload.products[:MOST_SCANNED]):
        kind = chart_kind(product)
        if kind is None or (kind == "heat" and grids[product.measure] == MOST_HEATMAPS):
            continue
        yield place
        charts += 1
        grids[product.measure] += kind == "heat"
        if charts == MOST_CHARTS:
            return


def _figure(release: Release, table: Table) -> str:
    percent = words.percent_words(release.level)
    measure = table.product.measure
    unit = "rows" if measure is None else f"{measure} in its own unit, multiples of {readable(table.product.domain.measures[measure].unit)}"
    said = f"{table.id}; {unit}; {_interval(table, percent)}{_beyond(release)}"
    head = f"<h3>{escape(table.name)}</h3><span>{escape(said)}</span>"
    if chart_kind(table.product) == "total":
        answer, spread = float(table.answer), float(table.noise_std)
        margin = float(table.high - table.answer)
        body = f'<p class="total">{number(answer, spread)} <span>± {number(margin, spread)}</span></p>'
    else:
        body = chart(table, percent)
    return f"<figure>\n<figcaption>{head}</figcaption>\n{body}\n</figure>\n"


def _beyond(release: Release) -> str:
    """A reminder beside every chart."""
    privacy = release.plan.privacy
    if privacy.unit_column is None:
        return ""
    return f"; of the noise, not of rows beyond {privacy.max_rows} of a {privacy.unit_column}"


def _interval(table: Table, percent: str) -> str:
    kind = chart_kind(table.product)
    margin = float((table.high - table.answer).max())
    if kind in ("line", "lines"):
        visible = margin > 0.004 * float(abs(table.answer).max())
        return f"{percent} interval as a band" if visible else f"the {percent} interval, at most {error(margin)}, is thinner than the line"
    if kind == "heat":
        return f"{percent} interval at most {error(margin)}; hatched where it contains 0"
    return f"± is the {percent} interval" if kind == "total" else f"thin lines are {percent} intervals"


def _reading(release: Release) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in words.limits(release))
    if aware.facts_of(release.plan) is not None:
        return (
            f"<section>\n<h2>How to read the error bars</h2>\n<p>{escape(words.interval_words(release))}</p>\n"
            f"<h3>What they do not cover</h3>\n<ul>{items}</ul>\n</section>"
        )
    return (
        f"<section>\n<h2>How to read the error bars</h2>\n<p>{escape(words.interval_words(release))}</p>\n"
        "<p>Answers are not rounded, and small ones may come out below zero: that is noise, and taking it away would bias every sum of "
        "answers. Tables agree with each other wherever they overlap.</p>\n"
        f"<h3>What they do not cover</h3>\n<ul>{items}</ul>\n</section>"
    )


def _rows(release: Release) -> str:
    domain = release.plan.domain
    rules = [words.domain_words(name, domain.kind(name)) for name in domain.names]
    rules += [words.measure_words(name, measure) for name, measure in domain.measures.items()]
    items = "".join(f"<li>{escape(rule)}</li>" for rule in rules[:MOST_ROWS])
    more = (
        ""
        if len(rules) <= MOST_ROWS
        else f'<p class="note">The first {MOST_ROWS} of {len(rules)} rules; all are in <code>manifest.json</code>.</p>'
    )
    return f"<section>\n<h2>Which rows were counted</h2>\n<p>{escape(words.dropped_words(domain))}</p>\n<ul>{items}</ul>\n{more}</section>"


def _rest(release: Release) -> str:
    return "" if aware.facts_of(release.plan) is None else "approximation_std, "


def _files(release: Release, entries: Sequence[TableEntry]) -> str:
    first = escape(entries[0].files)
    biased = ""
    if release.options.biased:
        items = "".join(f"<li>{escape(text)}</li>" for text in words.post_processing_words(release))
        biased = f"<h3>Beside the unbiased answers</h3>\n<ul>{items}</ul>\n"
    return (
        "<section>\n<h2>The files</h2>\n<ul>\n"
        f"<li><code>answers/</code>: all answers, as in <code>{first}</code>: keys, answer, noise_std, {_rest(release)}low, high</li>\n"
        "<li><code>tables.csv</code>: what every table asks, where it is, and its expected error</li>\n"
        f"{_covariances(release)}"
        "<li><code>measurements/</code>: the noisy whole numbers from which all answers were computed, and the plan that made them</li>\n"
        "<li><code>manifest.json</code>: everything on this page and more, for programs, with the SHA-256 of every file</li>\n"
        f"</ul>\n{biased}</section>"
    )


def _covariances(release: Release) -> str:
    if not release.options.covariances:
        return ""
    names = ", ".join(escape(key) for key in release.options.covariances)
    return f"<li><code>covariances/</code>: how the noise of the answers of {names} goes together, for the errors of sums of them</li>\n"


def _footer(release: Release) -> str:
    made = versions()
    receipt = release.observation.receipt
    private = "" if release.private else f"<br><strong>{escape(words.NOT_PRIVATE)}</strong>"
    return (
        f"<footer>Plan <code>{release.plan_digest}</code>{'<br>Receipt <code>' + escape(receipt) + '</code>' if receipt else ''}"
        f"<br>leastnoise {escape(made['leastnoise'])}, numpy {escape(made['numpy'])}, Python {escape(made['python'])}{private}</footer>"
    )
