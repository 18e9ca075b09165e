"""What readers of a release see: the catalogue of sentences by language, numbers as each language writes them, and templates of pages."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from leastnoise._charts import in_digits
from leastnoise._check import readable

LANGUAGES = ("en", "de")
TEMPLATES = Path(__file__).with_name("templates")
_LEFT_OUT = "\u2013"  # in the place of an answer that is not published


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The sentences of one language."""

    language: str
    sentences: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """A sentence with its places filled."""
        return self.sentences[key] % {name: self.plain(value) for name, value in values.items()}

    def some(self, key: str, count: int, **values: object) -> str:
        """A sentence for one or for several: ``key_one`` or ``key_many`` with ``%(count)s``."""
        return self.say(f"{key}_one" if count == 1 else f"{key}_many", count=count, **values)

    def plain(self, value: object) -> str:
        """A text as it is; a number with separators and all digits that count."""
        if isinstance(value, Fraction):
            return self.plain(int(value)) if value.denominator == 1 else self.local(in_digits(float(value)))
        if isinstance(value, int):
            return self.local(f"{value:,}")
        if isinstance(value, float):
            value = float(f"{value:.4g}")
            return self.local(f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:g}")
        return str(value)

    def local(self, text: str) -> str:
        """A number that is written the English way, in the language's way; of a power of ten, the digits that count."""
        text = text.replace("e-0", "e-").replace("e+0", "e+")
        return text if self.language == "en" else text.translate(str.maketrans(",.", ".,"))

    def exact(self, value: Fraction) -> str:
        """A bound or a unit with separators and all of its digits."""
        whole, mark, rest = readable(value).partition(".")
        return self.local((f"{int(whole):,}" if whole.lstrip("-").isdecimal() and int(whole) else whole) + mark + rest)

    def listed(self, names: list[str]) -> str:
        """Names in a row: a, b and c."""
        return self.say("and", first=", ".join(names[:-1]), last=names[-1]) if len(names) > 1 else "".join(names)

    def number(self, value: float, spread: float = 1.0) -> str:
        """A number with the digits that its margin leaves meaningful, and separators of thousands."""
        if math.isnan(value):
            return _LEFT_OUT
        places = max(0, 1 - math.floor(math.log10(spread))) if 0 < spread < 1 else 0
        text = f"{value:,.{min(places, 12)}f}"
        return self.local(text[1:] if text.startswith("-") and not text.strip("-0.,") else text)

    def error(self, value: float) -> str:
        """A margin or standard error, in three digits."""
        if math.isnan(value):
            return _LEFT_OUT
        short = float(f"{value:.3g}")
        if not short > 0:
            return "0"
        return self.local(f"{short:,.{max(0, 2 - math.floor(math.log10(short)))}f}")

    def percent(self, share: float, digits: int = 6) -> str:
        r"""A share as a percentage."""
        return self.local(in_digits(float(f"{100 * share:.{digits}g}"))) + ("%" if self.language == "en" else "\u00a0%")

    def value(self, answer: float, margin: float) -> str:
        """An answer with its margin."""
        if math.isnan(answer):
            return _LEFT_OUT
        return f"{self.number(answer, margin)} ± {self.number(margin, margin)}"


@cache
def texts(language: str = "en") -> Texts:
    """The catalogue of a language."""
    folder = Path(__file__).with_name("texts")
    sentences: dict[str, str] = {}
    for path in (folder / f"{language}.toml", *sorted(folder.glob(f"*.{language}.toml"))):
        sentences |= tomllib.loads(path.read_text(encoding="utf-8"))
    return Texts(language, sentences)


ENGLISH = texts("en")


def filled(template: str, **values: Any) -> str:
    """A template with its values; every text is escaped, and a value that is missing is an error."""
    # Readers of HTML and XML take a bare carriage return for the end of a line; here only texts have one.
    return str(templates(TEMPLATES).get_template(template).render(**values)).replace("\r", "&#13;")


@cache
def templates(folder: Path) -> Any:
    """The templates of a folder; every text in them is escaped, and a value that is missing is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
