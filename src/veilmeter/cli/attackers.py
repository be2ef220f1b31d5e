"""`veilmeter attackers`: who is who, in the words of the VoicePrivacy challenges and of Vauquier et al. 2025."""

from __future__ import annotations

from veilmeter.cli import options, streams


def command(
    json: options.Json = False,
    markdown: options.Markdown = False,
) -> None:
    """The attackers, what each has, and what others call them."""
    from veilmeter.attacks.knowledge import ATTACKERS
    from veilmeter.cli.output import chosen_form
    from veilmeter.core.files import to_json

    form = chosen_form(json=json, markdown=markdown)
    if form == "json":
        print(to_json({name: one.to_json() | {"other_names": one.aliases} for name, one in ATTACKERS.items()}))
        return
    columns = ("attacker", "enrolment speech", "extractor", "inversion", "VoicePrivacy", "Vauquier et al. 2025")
    rows = [
        (
            one.name,
            "original" if one.enrolment == "original" else "anonymized, same system",
            one.extractor.removeprefix("adapted to speech ") if not one.adapted else f"adapted to a {one.adaptation}",
            {"none": "-", "procrustes": "from known pairs", "wasserstein": "without pairs"}[one.inversion],
            one.voiceprivacy or "-",
            one.vauquier2025 or "-",
        )
        for one in ATTACKERS.values()
    ]
    rows = [tuple(cell.replace("to a same", "to the same") for cell in row) for row in rows]  # type: ignore[misc]
    if form == "markdown":
        for row in (columns, ("---",) * len(columns), *rows):
            print("| " + " | ".join(row) + " |")
        return
    from rich.table import Table

    console = streams.console()
    table = Table(box=None, pad_edge=False, show_lines=False)
    # For 80 columns: what is learnt to undo the anonymizer stands with the extractor, and no word is ever cut, as a
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
