"""State facts about sources without reading rows, for drafts and pages."""

from leastnoise._sources._schema import SchemaField, file_endings, has_text_rows, schema
