"""Read a spec file as a typed value: source, workload, privacy and output.

Read `_spec.py` first. `_location_spec.py` reads the location of the rows, `_domain_spec.py` the
attributes and measures, `_level_spec.py` the levels, `_label_spec.py` the texts of codes,
`_public_spec.py` public counts and impossible combinations, and `_public_files.py` the files that
these parts name. `_workload_spec.py` reads the queries, and `_category_spec.py` and
`_bounds_spec.py` the searches for categories and for bounds. `_draft_columns.py` and
`_column_names.py` suggest settings for a draft from the types and names of columns. `_toml_text.py`
formats the draft. `_warnings.py` warns about settings that are valid but probably mistaken.
"""

from leastnoise._spec._bounds_spec import BoundsSearch, plan_bounds_searches
from leastnoise._spec._category_spec import CategorySearch, plan_category_searches
from leastnoise._spec._domain_spec import domain_from_spec
from leastnoise._spec._draft_columns import (
    SourceColumn,
    SourceColumns,
    date_range_in_name,
    source_columns,
)
from leastnoise._spec._spec import (
    BLANK,
    LEAST,
    Spec,
    columns_to_read,
    differing_parts,
    parse_spec,
    read_plan,
    read_spec,
    read_spec_text,
    read_toml,
    spec_from_table,
)
from leastnoise._spec._toml_text import (
    escape_comment,
    format_toml_key,
    format_toml_value,
    path_for_spec,
)
from leastnoise._spec._warnings import (
    budget_warnings,
    plan_warnings,
    shared_budget_warnings,
    spec_warnings,
    time_limit_warnings,
)
