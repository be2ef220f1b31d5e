"""Measures: of scores, of people who are linked or singled out, of similarity, and of utility."""
