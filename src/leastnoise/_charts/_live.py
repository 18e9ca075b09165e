"""A chart that lives in a notebook."""

from typing import TYPE_CHECKING

from leastnoise._charts._picture import Spec

if TYPE_CHECKING:
    import altair as alt


def live(spec: Spec) -> "alt.TopLevelMixin":
    """A specification as an Altair chart, which notebooks show and which can be changed and saved further."""
    import altair as alt

    kind = alt.FacetChart if "facet" in spec else alt.LayerChart
    return kind.from_dict(spec)
