"""Numbers and dates of a chart as a language writes them."""

from typing import Any

from leastnoise._charts._picture import Spec

_LOCALES: dict[str, Any] = {"en": "en-US", "de": "de-DE"}


def spoken(spec: Spec, language: str) -> Spec:
    """A specification that writes numbers and dates as a language does, wherever it is drawn."""
    import vl_convert

    locale = _LOCALES[language]
    words = {"number": vl_convert.get_format_locale(locale), "time": vl_convert.get_time_format_locale(locale)}
    return {**spec, "config": {**spec.get("config", {}), "locale": words}}
