"""Findings that belong to no subject."""

from veilmeter.wording import numbers
from veilmeter.wording.catalog import Catalog

WORDS = Catalog()

WORDS.say("unclassified", "{text}")


@WORDS.words("warnings_left_out")
def _warnings_left_out(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{numbers.count(count, 'warning')} about single files or recordings {verb} left out here; see results.json."


@WORDS.words("remarks_left_out")
def _remarks_left_out(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{numbers.count(count, 'remark')} {verb} left out here; see results.json."


@WORDS.words("reasons_left_out")
def _reasons_left_out(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{count:,} more {verb} listed in results.json."
