"""Linkability, Singling Out and their relatives."""
