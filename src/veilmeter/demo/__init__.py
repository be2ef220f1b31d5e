"""The embedded default: synthetic voices, so that the whole story runs with nothing but the package index."""
