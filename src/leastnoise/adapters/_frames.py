"""Data frames of pandas, Polars and PyArrow through narwhals, which imports none of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from leastnoise._check import InputError
from leastnoise.adapters._column import CHUNK, STRANGE, Column, Source


def open_frame(frame: Any) -> Source | None:
    """Open a data frame, eager or lazy; only its schema is read.

    Args:
        frame: a pandas or Polars frame, a Polars lazy frame, a PyArrow table, or a narwhals frame around one.

    Returns:
        The source, or None if this is not a frame that narwhals knows.

    Raises:
        InputError: a frame with a column name twice.
    """
    try:
        native = nw.from_native(frame, pass_through=False)
    except TypeError:
        return None
    except Exception:  # noqa: BLE001 - every library has its own error for it
        raise InputError(
            "the data frame must have column names that differ from each other. Rename or drop one of those that occur twice."
        ) from None
    schema = native.collect_schema()
    what = f"the {native.implementation.name.lower()} data frame"
    lazy = isinstance(native, nw.LazyFrame)
    strange = {name: str(kind) for name, kind in schema.items() if not _readable(kind)}

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        try:
            wanted = native.select(list(dict.fromkeys(columns)) or native.columns)
            eager = wanted.collect() if lazy else wanted
        except Exception:  # noqa: BLE001 - a lazy query can fail in many ways, and its text may quote a row
            raise InputError(f"{what} cannot be computed. Collect it first, to see its own error.") from None
        for start in range(0, len(eager), CHUNK):
            part = eager[start : start + CHUNK]
            ready = {name: _column(part[name]) for name in columns}
            yield len(part), [ready[name] for name in columns]

    # pandas allows names that are not text; no domain can name them
    names = tuple(name for name in schema if isinstance(name, str))
    return Source(what=what, names=names, total=None if lazy else len(native), chunks=chunks, strange=strange)


def _readable(kind: Any) -> bool:
    # datetime is exact: a duration and a time of day have no string form in the rule
    return bool(
        kind.is_numeric()
        or isinstance(kind, (nw.Boolean, nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Date, nw.Datetime, nw.Binary, nw.Unknown))
    )


def _column(series: Any) -> Column:
    """Take a column without ever failing on a value."""
    kind = series.dtype
    if (kind.is_integer() and not isinstance(kind, (nw.Int128, nw.UInt128))) or kind.is_float() or isinstance(kind, nw.Boolean):
        null = series.is_null().to_numpy().astype(np.bool_)
        filled = series.fill_null(False if isinstance(kind, nw.Boolean) else 0) if null.any() else series
        data = filled.to_numpy()
        if data.dtype.kind in "biuf":
            return Column(data, null)
    if isinstance(kind, (nw.Date, nw.Datetime)):
        if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        data = series.to_numpy()
        if data.dtype.kind == "M":
            return Column(data)
    if not _readable(kind):
        return Column([None if missing else STRANGE for missing in series.is_null().to_list()])
    try:
        return Column(series.to_list())
    except Exception:  # noqa: BLE001 - some value has no Python form; take the others one by one
        return Column([_item(series, place) for place in range(len(series))])


def _item(series: Any, place: int) -> object:
    try:
        return series.item(place)
    except Exception:  # noqa: BLE001 - a value without a Python form, such as text that is not UTF-8
        return STRANGE
