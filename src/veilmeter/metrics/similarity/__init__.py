"""Voice similarity matrices."""
