"""A strategy along every attribute, and the tables that they are measured in."""
