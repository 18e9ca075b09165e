"""The studio: local pages to draft specs, plan and explore releases.

It never reads private rows.
"""

from leastnoise._studio._begin_page import list_commands, read_columns, spec_from_form
from leastnoise._studio._explore_page import ReleaseExplorer, exploring_page
from leastnoise._studio._pages import ASSETS, preferred_language
from leastnoise._studio._planning import (
    BackgroundProcess,
    Planning,
    PlanningState,
    fields_by_group,
    rescale_plan,
    state_json,
    table_margins,
)
from leastnoise._studio._publication_fields import combine_languages, read_fields
from leastnoise._studio._server import Studio
from leastnoise._studio._studio_draft import (
    change_draft,
    draft_from_text,
    format_spec,
    handle_request,
    save_spec,
)
