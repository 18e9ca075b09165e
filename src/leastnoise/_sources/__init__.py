"""Facts about sources that need no row, for drafts of specs and for pages."""

from leastnoise._sources._schema import SchemaField, file_endings, has_text_rows, schema
