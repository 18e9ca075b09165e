"""The spec file as a typed value: what is read, asked, protected and published.

Begin with `_spec.py`. `_source.py` reads where the rows are and `_domain.py` what columns may hold, `_searches.py` which categories are
found first; `_source.py` also has what names and types of columns suggest for a draft, `_warnings.py` warns of valid but probably mistaken
settings.
"""

from leastnoise._spec._searches import Searched, search_plans
from leastnoise._spec._source import SourceColumn, source_columns
from leastnoise._spec._spec import BLANK, LEAST, Spec, asked_about, parse_spec, read_spec, read_spec_text, read_toml, spec_from_table
from leastnoise._spec._warnings import plan_warnings, spec_warnings
