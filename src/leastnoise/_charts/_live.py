"""A chart that lives in a notebook."""

import json
import re
from typing import TYPE_CHECKING

from leastnoise._charts._picture import Spec

if TYPE_CHECKING:
    import altair as alt

_TAG = re.compile(r"<(?=[/!?a-z])", re.IGNORECASE)


def live(spec: Spec) -> "alt.TopLevelMixin":
    """A specification as an Altair chart, which notebooks show and which can be changed and saved further.

    Altair writes specifications into scripts of HTML as they are, where a label could end the script: a mark that nobody sees (a word
    joiner) follows each of its signs that could begin a tag.
    """
    import altair as alt

    kind = alt.FacetChart if "facet" in spec else alt.LayerChart
    return kind.from_dict(json.loads(_TAG.sub("<\u2060", json.dumps(spec))))
