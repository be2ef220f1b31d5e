"""Measures of verification scores."""
