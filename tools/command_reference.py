"""`python tools/command_reference.py`: docs/reference/commands.md, from the declared options."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.settings import RunOptions, Settings
from veilmeter.assessment.statements import AnnexEntries, Recipient
from veilmeter.cli.command import default_text, metavar, split_examples, summary
from veilmeter.cli.main import SECTIONS
from veilmeter.core.options import Option, all_options, options_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"
INTRODUCTION = """# Commands

All commands and their options, as `--help` shows them. An option that takes several values takes them
separated by commas, or can be repeated. Options that many commands have are [listed once](#shared-options), at the end.
`make reference` writes this page from the declarations of the options.
"""
SHARED = "Shared options"
SHARED_BY = 3  # commands that declare an option in the same words
OF_A_FILE = """
In the TOML file of `assess`, options have the same names without `--` (`lengths = [1, 3]`, `no-intervals = true`), and
relative paths are relative to the file. What is special about one attacker is in a table `[attackers.NAME]`:
"""
OF_THE_ANNEX = """
Entries of the annex are in a table `[annex]`, as text in your own words. What is not there stays a line to fill in:
"""
OF_RECIPIENTS = """
Each recipient of the speech is a table `[[recipients]]`, which says what that recipient has:
"""
IN_A_FILE = ((OF_A_FILE, AttackerSettings), (OF_THE_ANNEX, AnnexEntries), (OF_RECIPIENTS, Recipient))
HEAD = "| option | meaning | default |\n|---|---|---|\n"


def page() -> str:
    """The whole page."""
    listed = [name for _, names in SECTIONS for name in names]
    modules = {name: import_module(f"veilmeter.cli.{name.replace('-', '_')}") for name in listed}
    shared = _shared(modules.values())
    parts = [INTRODUCTION]
    for title, names in SECTIONS:
        parts.append(f"\n## {title}\n")
        parts += [_command(name, modules[name], shared) for name in names]
    parts.append(f"\n## {SHARED}\n")
    for title, options in _groups(shared.values()).items():
        parts.append(f"\n**{title}**\n\n{_table(options, _names)}")
    return "".join(parts)


def _shared(modules: Iterable[Any]) -> dict[str, Option]:
    """The options that several commands declare in the same words, by their row of the table."""
    declared = [
        {_row(option, _names): option for option in _visible(module) if not option.argument}
        for module in modules
        if hasattr(module, "OPTIONS")
    ]
    rows = Counter(row for options in declared for row in options)
    return {row: option for options in declared for row, option in options.items() if rows[row] >= SHARED_BY}


def _visible(module: Any) -> list[Option]:
    return [option for option in all_options(module.OPTIONS).values() if not option.in_file]


def _command(name: str, module: Any, shared: Mapping[str, Option]) -> str:
    if not hasattr(module, "OPTIONS"):
        functions = [below.callback for below in module.app.registered_commands]
        rows = [f"| `{name} {function.__name__}` | {summary(function.__doc__)} |\n" for function in functions]
        return f"\n### {name}\n\n{module.app.info.help}\n\n| command | |\n|---|---|\n{''.join(rows)}"
    about, examples = split_examples(module.command.__doc__ or "")
    text = f"\n### {name}\n\n{summary(about)}\n"
    if examples:
        text += "\n" + "".join(f"- `{line}`\n" for line in examples)
    declared = _visible(module)
    for title, options in _groups(option for option in declared if _row(option, _names) not in shared).items():
        text += f"\n**{title}**\n\n{_table(options, _names)}"
    elsewhere = [option.all_flags[0] for option in declared if _row(option, _names) in shared]
    if elsewhere:
        flags = ", ".join(f"`{flag}`" for flag in sorted(elsewhere))
        text += "\n" + textwrap.fill(f"[{SHARED}](#shared-options): {flags}", 120, break_on_hyphens=False) + "\n"
    if RunOptions in module.OPTIONS and Settings in module.OPTIONS:
        for introduction, kind in IN_A_FILE:
            text += introduction + "\n" + _table(options_of(kind).values(), lambda option: f"`{option.name}`")
    return text


def _groups(declared: Iterable[Option]) -> dict[str, list[Option]]:
    """The options by heading: arguments and those without a heading first."""
    groups: dict[str, list[Option]] = {"Arguments": [], "Options": []}
    for option in declared:
        groups.setdefault("Arguments" if option.argument else option.group or "Options", []).append(option)
    return {title: options for title, options in groups.items() if options}


def _table(options: Iterable[Option], names: Any) -> str:
    return HEAD + "".join(_row(option, names) for option in options)


def _row(option: Option, names: Any) -> str:
    cells = (names(option), option.help, default_text(option))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _names(option: Option) -> str:
    if option.argument:
        return f"`{option.metavar or option.name.upper()}`"
    value = "" if option.is_flag else f" {metavar(option)}"
    return ", ".join(f"`{flag}{value}`" for flag in option.all_flags)


# --- the signature of assess()

SIGNATURE = Path(__file__).resolve().parents[1] / "src" / "veilmeter" / "assessment" / "signature.py"
BEGIN, END = "# --- written by `make reference`\n", "# --- end\n"
OF_CHALLENGES = ("vpc", "sets")  # options of assess_challenge()
TYPES = {
    "attackers": "str | Attacker | Sequence[str | Attacker | type[Attacker]] | Mapping[str, Any] | None",
    "annex": "Mapping[str, Any] | None",
    "recipients": "Sequence[Mapping[str, Any]] | None",
    "measures": "str | Measure | Sequence[str | Measure]",
    "extractor": "Code | Sequence[Code]",
    "speakers": "str | int | Sequence[int]",
    **dict.fromkeys(("system", "recognizer", "network"), "Code | None"),
    **dict.fromkeys(("weak_attacker", "precision"), "float | str"),
    "threshold": "float | str | None",
}
ABOUT = '''    """Assess an anonymizer from original and anonymized speech of the same utterances.

    Every attacker tries to recognize people in the anonymized speech, and every measure is reported for each of them,
    the worst case first. The options are those of `veilmeter assess`, by the same names.

    Parameters
    ----------
'''
AFTER = '''    out : str or Path, optional
        Folder for results and report; an interrupted run continues there. Without one, everything is in memory.
    jobs : int
        Processes on this machine. Results do not depend on it.
    cluster : str, optional
        Dask cluster to run on: tcp://host:8786, `local`, or slurm, oar, pbs.

    Returns
    -------
    Assessment
        The results, with `verdict`, `people`, `to_frame()` and `report()`.

    Raises
    ------
    InputError
        If an input can't be read or an option is unknown or out of bounds; it says what is wrong and how to fix it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> voices, names = np.repeat(rng.normal(size=(12, 8)), 4, axis=0), [f"s{row // 4}" for row in range(48)]
    >>> run = assess((voices + 0.1 * rng.normal(size=(48, 8)), names), (rng.normal(size=(48, 8)), names),
    ...              attackers=["ignorant"], measures=["eer", "linkability"], intervals=False)
    >>> run.attackers["ignorant"].estimates["eer"].unit
    'percent'
    """
'''


def signature() -> str:
    """The function assess(), from the declared options."""
    declared = {name: option for name, option in options_of(Settings).items() if name not in OF_CHALLENGES}
    first = ("original", "anonymized")
    parameters = [f"    {name}: Speech = None,\n" for name in first] + ["    *,\n"]
    given = []
    about = ""
    for name, option in declared.items():
        kind, default = _python(name, option)
        if name not in first:
            parameters.append(f"    {name}: {kind} = {default},\n")
            given.append(f"        {name}={name},\n")
        words = f"If False: {option.help}" if option.item is bool and option.default else option.help
        about += _wrap(f"{name} : {_numpy(kind)}", words)
    parameters += ["    out: str | Path | None = None,\n", "    jobs: int = 1,\n", "    cluster: str | None = None,\n"]
    parameters.append("    **unknown: Never,\n")
    body = "".join(
        ["    refuse_unknown_options(unknown, options_of(Settings))\n",
         "    return run_assessment(\n        original,\n        anonymized,\n", *given,
         "        out=out,\n        jobs=jobs,\n        cluster=cluster,\n    )\n"]
    )  # fmt: skip
    return f"\n\ndef assess(\n{''.join(parameters)}) -> Assessment:\n{ABOUT}{about}{AFTER}{body}\n\n"


def _python(name: str, option: Option) -> tuple[str, str]:
    """The type and the default of an option as Python writes them."""
    default = (
        None if option.default in ({}, ()) and (option.role == "source" or option.item is dict) else option.default
    )
    if option.role == "source":
        return "Speech", "None"
    if name in TYPES:
        return TYPES[name], "MEASURES" if name == "measures" else _literal(default)
    kind = option.item.__name__
    if option.is_list:
        kind = f"{kind} | Sequence[{kind}]"
    return kind if default is not None else f"{kind} | None", _literal(default)


def _literal(value: Any) -> str:
    return repr(value).replace("'", '"')


def _numpy(kind: str) -> str:
    optional = kind.endswith(" | None") or kind == "Speech"
    plain = kind.removesuffix(" | None").replace("Speech", "path, Corpus, Embeddings, arrays, or a list of these")
    plain = plain.replace("Code | Sequence[Code]", "str, function, object, or a list of these")
    plain = plain.replace("Code", "str, function or object").replace(" | ", " or ")
    return plain + (", optional" if optional else "")


def _wrap(head: str, words: str) -> str:
    lines = textwrap.wrap(words, 112)
    return f"    {head}\n" + "".join(f"        {line}\n" for line in lines)


def with_signature(source: str) -> str:
    """The module of assess() with the signature in its place, formatted as the project is."""
    before, _, rest = source.partition(BEGIN)
    return before + BEGIN + signature() + END + rest.partition(END)[2]


if __name__ == "__main__":
    SIGNATURE.write_text(with_signature(SIGNATURE.read_text(encoding="utf-8")), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
