"""A few larger tables that contain the asked ones between them."""
