"""`veilmeter attackers`: who is who, in the words of the VoicePrivacy challenges and of Vauquier et al. 2025."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veilmeter.cli import terminal
from veilmeter.cli.command import Given
from veilmeter.core import option_groups
from veilmeter.core.options import OptionSet, declare

if TYPE_CHECKING:
    from veilmeter.attacks.attacker import Attacker

COLUMNS = ("attacker", "enrollment speech", "extractor", "inversion", "VoicePrivacy", "Vauquier et al. 2025")


@dataclass(frozen=True, kw_only=True)
class ListOptions(OptionSet):
    """The options of the command."""

    attackers: tuple[str, ...] = declare(
        (), help="Your own attackers, each as file.py:name or module:name, to list beside the others.", argument=True,
        metavar="[OWN]...",
    )  # fmt: skip
    json: bool = option_groups.json()
    markdown: bool = option_groups.markdown()


OPTIONS = (ListOptions,)


def command(given: Given) -> None:
    """List the attackers: what each one does, and its other names.

    Examples:

        veilmeter attackers

        veilmeter attackers mine.py:NearestRecording
    """
    from veilmeter.attacks.attacker import ATTACKERS, BASELINE, attacker_name
    from veilmeter.cli.output import output_form
    from veilmeter.core.files import to_json

    options = given.build(ListOptions)
    form = output_form(options)
    own = {name: ATTACKERS[name] for name in map(attacker_name, options.attackers)}
    attackers = {name: attacker for name, attacker in {**dict(ATTACKERS.items()), **own}.items() if name != BASELINE}
    if form == "json":
        print(to_json({name: attacker.to_json() for name, attacker in attackers.items()}))
        return
    rows = [attacker.row for attacker in attackers.values()]
    if form == "markdown":
        for row in (COLUMNS, ("---",) * len(COLUMNS), *rows):
            print("| " + " | ".join(row) + " |")
        return
    from rich.padding import Padding
    from rich.table import Table

    console = terminal.console()
    width = max(map(len, attackers))
    for title, group in _groups(attackers.values()).items():
        console.print(f"{title}:")
        table = Table.grid(padding=(0, 2))
        table.add_column(width=width)
        for attacker in group:
            table.add_row(attacker.name, _description(attacker))
        console.print(Padding(table, (0, 0, 1, 2)))
    console.print("What each one has, as a table: veilmeter attackers --markdown", style="dim")


def _groups(attackers: Iterable[Attacker]) -> dict[str, list[Attacker]]:
    groups: dict[str, list[Attacker]] = {}
    for attacker in attackers:
        if attacker.default:
            title = "Attackers that `veilmeter assess` runs"
        elif attacker.apart:
            title = "On request (--attackers NAME), reported beside the headline"
        elif attacker.several:
            title = "Added if there is more than one --extractor"
        else:
            title = "On request (--attackers NAME)"
        groups.setdefault(title, []).append(attacker)
    return groups


def _description(attacker: Attacker) -> str:
    """What it does, and its names elsewhere where they are others."""
    from veilmeter.wording.numbers import capitalize

    names = {"VoicePrivacy": attacker.voiceprivacy, "Vauquier et al. 2025": attacker.vauquier2025}
    elsewhere = "; ".join(f"{who}: {name}" for who, name in names.items() if name and name != attacker.name)
    about = capitalize(attacker.about)
    return f"{about} ({elsewhere})." if elsewhere else f"{about}."
