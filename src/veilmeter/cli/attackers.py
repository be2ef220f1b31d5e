"""`veilmeter attackers`: who is who, in the words of the VoicePrivacy challenges and of Vauquier et al. 2025."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilmeter.cli import options, streams

if TYPE_CHECKING:
    from veilmeter.attacks.knowledge import Attacker


def command(
    json: options.Json = False,
    markdown: options.Markdown = False,
) -> None:
    """The attackers, what each has, and what others call them."""
    from veilmeter.attacks.knowledge import ORIGINAL, known_attackers
    from veilmeter.cli.output import chosen_form
    from veilmeter.core.files import to_json

    form = chosen_form(json=json, markdown=markdown)
    everybody = [attacker for name, attacker in known_attackers().items() if name != ORIGINAL.name]
    if form == "json":
        print(
            to_json(
                {
                    attacker.name: attacker.to_json() | {"other_names": attacker.aliases, "default": attacker.default}
                    for attacker in everybody
                }
            )
        )
        return
    columns = ("attacker", "enrollment speech", "extractor", "inversion", "VoicePrivacy", "Vauquier et al. 2025")
    rows = [_row(attacker) for attacker in everybody]
    if form == "markdown":
        for row in (columns, ("---",) * len(columns), *rows):
            print("| " + " | ".join(row) + " |")
        return
    from rich.table import Table

    console = streams.console()
    table = Table(box=None, pad_edge=False, show_lines=False)
    # For 80 columns: what is learned to undo the anonymizer stands with the extractor, and no word is ever cut, as a
    # name that others use is of no use without its end.
    shown = [(*row[:2], row[2] if row[3] == "-" else f"{row[2]}; undoes it, {row[3]}", *row[4:]) for row in rows]
    for number, column in enumerate((*columns[:3], *columns[4:])):
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


def _row(attacker: Attacker) -> tuple[str, str, str, str, str, str]:
    if attacker.attack:
        return attacker.name, "original, and own copies", "as given; many methods", "-", "-", "-"
    adapted = {
        "none": "trained on original speech",
        "similar system": "adapted to a similar system",
        "same system": "adapted to the same system",
    }
    return (
        attacker.name,
        "original" if attacker.enrollment == "original" else "anonymized, same system",
        adapted[attacker.adaptation],
        {"none": "-", "procrustes": "from known pairs", "wasserstein": "without pairs"}[attacker.inversion],
        attacker.voiceprivacy or "-",
        attacker.vauquier2025 or "-",
    )
