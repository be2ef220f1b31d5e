"""Figures, on the page and as files."""

from veilmeter.core.extras import need

need("altair", "vl_convert")
