"""The English catalog: one module per subject, each with a `Catalog` called WORDS.

A sentence that is the same for everybody is a template:

    WORDS.say("code", "{unchanged} of {compared:recording} did not change.")

A sentence with conditions is a function that takes the finding's values by name:

    @WORDS.words("code")            # for the terminal, and for everybody without another one
    def _code(unchanged: int, compared: int) -> str: ...

    @WORDS.words("code", "lay")     # for the first page
    def _code_lay(unchanged: int, compared: int) -> str: ...

Technical text says "chance", text for laypeople "guessing". Numbers are written by `wording.numbers`.
"""

from functools import reduce
from operator import or_

from veilmeter.wording.english import attackers, checks, comparison, decision, inputs, notes, verdict

_SUBJECTS = (inputs, attackers, verdict, checks, comparison, decision, notes)
ENGLISH = reduce(or_, (subject.WORDS for subject in _SUBJECTS))
