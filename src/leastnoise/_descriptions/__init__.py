"""Descriptions of tables by other tools, read as the domain, measures and unit of a spec; they are public, and no row is read."""

from leastnoise._descriptions._readers import READERS, Description, read_description
