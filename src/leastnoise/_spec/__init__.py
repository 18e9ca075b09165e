"""Read a spec file as a typed value: source, workload, privacy and output.

Begin with `_spec.py`, which also has the searches for categories; `_bounds.py` has the searches for
bounds. `_domain.py` reads the location of the rows and the domains of columns. `_draft_columns.py`
and `_column_names.py` derive suggestions for a draft from the types and names of columns, and
`_toml_text.py` formats the draft. `_warnings.py` warns of valid but probably mistaken settings.
"""

from leastnoise._spec._bounds import BoundsSearch, bounds_plans
from leastnoise._spec._domain import domain_from_spec
from leastnoise._spec._draft_columns import (
    SourceColumn,
    SourceColumns,
    days_in_name,
    source_columns,
)
from leastnoise._spec._spec import (
    BLANK,
    LEAST,
    CategorySearch,
    Spec,
    category_plans,
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
    crowded_warnings,
    early_warnings,
    plan_warnings,
    spec_warnings,
)
