"""The text of a draft: that of the spec as it was, comments and all, with what was changed."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from leastnoise._check import InternalError
from leastnoise._session import read_toml
from leastnoise._studio._draft import Draft, wanted


def spec_text(draft: Draft) -> str:
    r"""The spec as a text, with the comments that it had."""
    import tomlkit

    table, origins = wanted(draft)
    document = tomlkit.parse(draft.text)
    _merge(document, {key: value for key, value in table.items() if key != "workload"})
    old = document.unwrap()["workload"]
    if [old[place] if place is not None else None for place in origins] != table["workload"] or len(old) != len(origins):
        parts = tomlkit.aot()
        for entry, origin in zip(table["workload"], origins, strict=True):
            part = tomlkit.table() if origin is None else document["workload"][origin]
            _merge(part, entry)
            parts.append(part)
        document["workload"] = parts
    text = tomlkit.dumps(document)
    if read_toml(text) != table:
        raise InternalError("The text of the spec does not say what was planned.")
    return text


def _merge(old: MutableMapping[str, Any], new: Mapping[str, Any]) -> None:
    """Change what differs, and nothing else: what stays the same keeps its comments and its form."""
    import tomlkit

    for key in [key for key in old if key not in new]:
        if key != "workload":
            del old[key]
    for key, value in new.items():
        if key not in old:
            old[key] = _inline(value) if isinstance(value, Mapping) and key == "queries" else value
        elif isinstance(value, Mapping) and isinstance(old[key], MutableMapping):
            _merge(old[key], value)
        elif (old[key].unwrap() if isinstance(old[key], tomlkit.items.Item) else old[key]) != value:
            old[key] = value


def _inline(value: Mapping[str, Any]) -> Any:
    import tomlkit

    found = tomlkit.inline_table()
    found.update(value)
    return found
