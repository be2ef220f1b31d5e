"""Findings that belong to no subject."""

from veilmeter.wording.catalog import Catalog

WORDS = Catalog()

WORDS.say("unclassified", "{text}")
