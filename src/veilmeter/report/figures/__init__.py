"""Figures, on the page and as files."""

from veilmeter.core.errors import need

need("altair", "vl_convert")
