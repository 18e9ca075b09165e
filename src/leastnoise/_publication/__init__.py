"""Files of a release: tables, workbooks, manifest and exports.

A release is written atomically.
"""

from leastnoise._publication._category_files import (
    CATEGORY_COLUMN,
    CATEGORY_FILE,
    FoundCategories,
    describe_category_search,
    describe_search_chances,
    holds_categories,
    read_categories,
    read_categories_manifest,
    write_categories,
)
from leastnoise._publication._comparison_files import (
    check_labels,
    list_json_rows,
    write_comparison,
)
from leastnoise._publication._directory import (
    DraftDirectory,
    check_target,
    lock_output,
    open_draft,
    open_optional_draft,
    remove_dead_drafts,
    sha256,
    sync_to_disk,
)
from leastnoise._publication._exports import EXPORTS, REVIEW
from leastnoise._publication._found_bounds import (
    FoundBounds,
    describe_bounds_search,
    describe_found_bounds,
    holds_bounds,
    read_bounds,
    read_bounds_manifest,
    write_bounds,
)
from leastnoise._publication._manifest import Manifest, read_manifest
from leastnoise._publication._manifest_of_release import check_manifest, check_table_facts
from leastnoise._publication._metadata import FILL_IN, FILL_IN_ADDRESS, Publication
from leastnoise._publication._publication_workbook import PublicationTable
from leastnoise._publication._writing import (
    WRITERS,
    check_records_file,
    fill_draft,
    finishing_seconds,
    write_records,
    write_rounded,
)
