"""`veilmeter attackers`: who is who, in the words of the VoicePrivacy challenges and of Vauquier et al. 2025."""

from __future__ import annotations

from dataclasses import dataclass

from veilmeter.cli import terminal
from veilmeter.cli.command import Given
from veilmeter.core import option_groups
from veilmeter.core.options import OptionSet

COLUMNS = ("attacker", "enrollment speech", "extractor", "inversion", "VoicePrivacy", "Vauquier et al. 2025")


@dataclass(frozen=True, kw_only=True)
class ListOptions(OptionSet):
    """The options of the command."""

    json: bool = option_groups.json()
    markdown: bool = option_groups.markdown()


OPTIONS = (ListOptions,)


def command(given: Given) -> None:
    """List the attackers, what each one has, and its other names."""
    from veilmeter.attacks.attacker import ATTACKERS, BASELINE
    from veilmeter.cli.output import output_form
    from veilmeter.core.files import to_json

    form = output_form(given.build(ListOptions))
    attackers = {name: attacker for name, attacker in ATTACKERS.items() if name != BASELINE}
    if form == "json":
        print(to_json({name: attacker.to_json() for name, attacker in attackers.items()}))
        return
    rows = [attacker.row for attacker in attackers.values()]
    if form == "markdown":
        for row in (COLUMNS, ("---",) * len(COLUMNS), *rows):
            print("| " + " | ".join(row) + " |")
        return
    from rich.table import Table

    console = terminal.console()
    table = Table(box=None, pad_edge=False, show_lines=False)
    # For 80 columns: the inversion is written with the extractor, and no word is ever cut, as a name that others use is
    # of no use without its end.
    shown = [(*row[:2], row[2] if row[3] == "-" else f"{row[2]}; {row[3]}", *row[4:]) for row in rows]
    for number, column in enumerate((*COLUMNS[:3], *COLUMNS[4:])):
        longest = max(len(word) for cell in (column, *(row[number] for row in shown)) for word in cell.split())
        table.add_column(column, header_style="dim", width=longest if number != 2 else None)
    for row in shown:
        table.add_row(*row)
    console.print(table)
    console.print(
        "\nThe last two columns are what others call the same attacker: the VoicePrivacy challenges' semi-informed "
        "attacker is our informed one.",
        style="dim",
    )
