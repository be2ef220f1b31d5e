"""`veilmeter anonymize`: a corpus through an anonymizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given
from veilmeter.cli.shared_options import CorpusWork
from veilmeter.core import option_groups
from veilmeter.core.devices import choose_device
from veilmeter.core.errors import InputError
from veilmeter.core.options import OptionSet, declare, option_without_effect, options_of, place_code

if TYPE_CHECKING:
    from veilmeter.anonymizers.anonymize_corpus import Anonymized
    from veilmeter.anonymizers.base import Anonymizer
    from veilmeter.data.corpus import Corpus


@dataclass(frozen=True, kw_only=True)
class SystemOptions(OptionSet):
    """Options of anonymizers that the command knows by name."""

    alpha: float | None = declare(None, help="mcadams: coefficient.", default_text="0.8", example=0.7)
    alpha_range: tuple[float, float] | None = declare(
        None, help="mcadams-random: range from which the coefficient is drawn.", metavar="LOW HIGH",
        default_text="0.5 0.9", example=(0.7, 0.9),
    )  # fmt: skip
    per: str | None = declare(
        None, help="Draw once per speaker or per utterance.", metavar="WHAT",
        default_text="utterance for mcadams-random and cascade, speaker for xvector-pool and command",
        example="speaker",
    )  # fmt: skip
    command: str | None = declare(
        None, help="command: program such as 'myanon {input} {output}'; for many recordings with {input_list} "
        "{output_list} or {input_folder} {output_folder}.", metavar="PROGRAM", example="cp -f {input} {output}",
    )  # fmt: skip
    program_version: str | None = declare(
        None, help="command: version of the program; its output is kept while this is the same, instead of the content "
        "of the files it names.", flags=("--version",), common=False, example="2",
    )  # fmt: skip
    batch: int | None = declare(
        None, help="command: recordings per start with lists.", least=1, default_text="500", common=False, example=2
    )
    timeout: float | None = declare(
        None, help="command: seconds per recording.", default_text="600", common=False, example=30
    )
    furthest: int | None = declare(
        None,
        help="xvector-pool: number of distant voices to consider.",
        least=1,
        default_text="60",
        common=False,
        example=5,
    )
    drawn: int | None = declare(
        None, help="xvector-pool: number of these to average.", least=1, default_text="10", common=False, example=2
    )
    gender: str | None = declare(None, help="xvector-pool: random, same or cross.", example="cross")
    distance: str | None = declare(None, help="xvector-pool: cosine or plda.", common=False, example="plda")
    voice: str | None = declare(
        None, help="cascade: kokoro (a mixture of voices) or fast (one voice).", default_text="kokoro", example="fast"
    )
    keep: str | None = declare(
        None, help="cascade: what is kept besides the words: pauses, durations, pitch, prosody (both), punctuation; "
        "separated by commas.", metavar="WHAT", default_text="nothing", example="pauses",
    )  # fmt: skip
    model: str | None = declare(
        None, help="xvector-pool: model trained by `veilmeter train`.", path=True, example="none"
    )


@dataclass(frozen=True, kw_only=True)
class AnonymizeOptions(SystemOptions, CorpusWork):
    """The options of the command."""

    corpus: Path | None = declare(
        None, help="Corpus in any known layout, or a CSV (path, speaker, ...).", argument=True
    )
    out: Path | None = declare(None, help="Output folder; a stopped run continues in it.", argument=True)
    vpc: Path | None = declare(
        None, help="Folder of VoicePrivacy data instead: writes <set><suffix> beside every set, as the challenge's "
        "tools expect.",
        metavar="DATA", path=True, example="none",
    )  # fmt: skip
    sets: tuple[str, ...] = declare(
        (), help="Sets or folders of --vpc, such as libri_test or train-clean-360.", default_text="all",
        example="libri_test",
    )  # fmt: skip
    system: str | None = declare(
        None, help="mcadams, mcadams-random, xvector-pool, cascade, command, the name of an installed one, "
        "module:name or file.py:name.", metavar="NAME", default_text="mcadams, or command with --command",
        path=place_code, example="mcadams-random",
    )  # fmt: skip
    option: tuple[str, ...] = declare(
        (), help="Any other option of the system.", metavar="NAME=VALUE", example="gain=0.3"
    )
    seed: int = option_groups.seed()
    format: str = declare("flac", help="flac or wav, 16 bits either way.", example="wav")
    rate: int | None = declare(
        None, help="Sampling rate of the output.", metavar="HZ", default_text="the input's", example=8000
    )
    manifest: Path | None = declare(
        None, help="File that records what was done to each utterance.", default_text="OUT.manifest.jsonl", path=True,
        example="out-manifest.jsonl",
    )  # fmt: skip
    overwrite: bool = declare(False, help="Replace what was made with other settings.")


OPTIONS = (AnonymizeOptions,)


def command(given: Given) -> None:
    """Anonymize a corpus; its layout and its ids stay the same.

    A stopped run continues when the same command is given again, and ends with the same bytes. What was done to
    each utterance is in the manifest beside OUT. [bold]The manifest is a key to re-identification: keep it
    private.[/bold]

    Recordings that can't be used (silent, shorter than 0.5 s, truncated, ...) are left out and listed. The exit
    code is 0 if every recording was anonymized, 3 if some were left out, 2 if nothing could be done or, with
    --strict, as soon as one can't be used. An OUT made with other settings is refused unless --overwrite is given;
    output of another version of the system is replaced.

    Examples:

        veilmeter anonymize speech/ anonymized/ --system mcadams --alpha 0.8
        veilmeter anonymize speech/ anonymized/ --system mcadams-random --alpha-range 0.7 0.9 --per speaker --seed 1
        veilmeter anonymize speech/ anonymized/ --system cascade --voice fast
        veilmeter anonymize speech/ anonymized/ --command 'sox {input} {output} pitch -300'
        veilmeter anonymize speech/ anonymized/ --command 'python neural.py {input_list} {output_list}'
        veilmeter anonymize --vpc data/ --suffix _mine --sets libri_test,train-clean-360 --system mcadams
    """
    from veilmeter.anonymizers.base import load_with_unused, parse_options
    from veilmeter.cli.shared_options import exit_if_left_out, print_outcome, read_given, remarks_on_reading

    options = given.build(AnonymizeOptions)
    choose_device(options.device)
    system = options.system or ("mcadams" if options.command is None else "command")
    named = {name: getattr(options, name) for name in options_of(SystemOptions)}
    chosen: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    chosen |= {"seed": options.seed, "offline": options.offline}
    further = parse_options(options.option)
    if twice := sorted(chosen.keys() & further.keys()):
        own = twice[0].replace("_", "-")
        raise InputError(f"{own} is given twice", fix=f"give it once: --{own} is an option of its own")
    chosen |= further
    anonymizer, idle = load_with_unused(system, chosen)
    if options.vpc is not None:
        _anonymize_challenge(options.vpc, options, given, anonymizer, system)
        return
    if options.corpus is None or options.out is None:
        raise InputError("CORPUS and OUT are required", fix="give both, or --vpc DATA --suffix _NAME")
    if options.sets:
        raise InputError("--sets chooses among the sets of VoicePrivacy data", fix="give --vpc DATA too")
    recordings = read_given(options.corpus, options)
    done = _anonymize(recordings, options.out, anonymizer, options, options.corpus)
    inputs = {"corpus": str(options.corpus), "layout": recordings.layout, "system": system}
    print_outcome(
        "anonymize", inputs, {"anonymized": _facts(done)}, done.failed,
        json=options.json, as_text=lambda: _print(done, anonymizer),
        remarks=[
            *remarks_on_reading(given, options, recordings),
            *given.without_effect(idle),
            *(option_without_effect("--option", name, reason=idle[name]) for name in further if name in idle),
        ],
    )  # fmt: skip
    if not done.done:
        raise InputError("no recording could be anonymized", path=options.corpus)
    exit_if_left_out(done.failed)


def _anonymize(
    recordings: Corpus, out: Path, anonymizer: Anonymizer, options: AnonymizeOptions, source: Path, title: str = ""
) -> Anonymized:
    from contextlib import closing

    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.cli.terminal import show_progress
    from veilmeter.core.engine import open_engine

    with (
        closing(open_engine(options.jobs, options.cluster)) as engine,
        show_progress(f"anonymizing {title}".strip(), quiet=options.quiet) as progress,
    ):
        return anonymize_corpus(
            recordings, out, anonymizer, audio=options.format, rate=options.rate, engine=engine,
            manifest=options.manifest, overwrite=options.overwrite, source=source,
            max_seconds=options.max_seconds, strict=options.strict, progress=progress,
        )  # fmt: skip


def _anonymize_challenge(
    data: Path, options: AnonymizeOptions, given: Given, anonymizer: Anonymizer, system: str
) -> None:
    """Every folder of original speech into one with the suffix beside it, with WAV files as the challenge's tools read
    them, and a wav.scp relative to where these run."""
    from dataclasses import replace

    from veilmeter.assessment.challenge.submission import check_suffix, find_originals
    from veilmeter.cli.shared_options import exit_if_left_out, print_outcome
    from veilmeter.core.files import write_text
    from veilmeter.data.formats.vpc import read_folders

    given.refuse(["corpus", "out"], "--vpc names both", fix="leave it out")
    given.refuse(["layout", "part", "columns", "channel", "manifest"], "--vpc finds it", fix="leave it out")
    if not options.suffix:
        raise InputError("--suffix names the anonymized folders", fix="give one with its underscore, such as _mine")
    check_suffix(options.suffix)
    if "format" in given and options.format != "wav":
        raise InputError("the challenge's tools read WAV only", fix="leave out --format")
    options = replace(options, format="wav")
    finished = []
    for folder in find_originals(data, options.sets):
        recordings = read_folders([folder], options.roots)
        out = folder.path.with_name(f"{folder.base}{options.suffix}")
        done = _anonymize(recordings, out, anonymizer, options, folder.path, folder.base)
        if not done.done:
            raise InputError("no recording could be anonymized", path=folder.path)
        lines = sorted((entry.utterance, entry.output) for entry in done.entries if entry.output is not None)
        write_text(out / "wav.scp", "".join(f"{name} {(out / path).as_posix()}\n" for name, path in lines))
        finished.append(done)
    failed = [problem for done in finished for problem in done.failed]
    print_outcome(
        "anonymize", {"data": str(data), "suffix": options.suffix, "system": system},
        {"anonymized": [_facts(done) for done in finished]}, failed, json=options.json,
        as_text=lambda: _print_all(finished, anonymizer),
    )  # fmt: skip
    exit_if_left_out(failed)


def _facts(done: Anonymized) -> dict[str, object]:
    from dataclasses import asdict

    entries = done.entries
    return {
        "folder": str(done.out),
        "manifest": str(done.manifest),
        "system": entries[0].system,
        "version": entries[0].version,
        "utterances": done.done,
        "speakers": len({entry.speaker for entry in entries if entry.output is not None}),
        "hours": round(done.seconds / 3600, 4),
        "made": done.written,
        "kept": done.kept,
        "redone": done.redone,
        "draw": str(done.draw),
        "removed": done.removed,
        "scaled": done.scaled,
        "left_out": len(done.failed),
        "problems": [asdict(problem) for problem in done.problems],
    }


def _print_all(finished: list[Anonymized], anonymizer: Anonymizer) -> None:
    for done in finished:
        _print(done, anonymizer)


def _print(done: Anonymized, anonymizer: Anonymizer) -> None:
    from veilmeter.cli.output import print_problems
    from veilmeter.core.text import clean

    facts = _facts(done)
    before = f", {done.kept} of them from before" if done.kept else ""
    summary = f"{done.done} utterances of {facts['speakers']} speakers, {facts['hours']:.2f} hours{before}"
    print(clean(f"{done.out}: {summary}; {facts['system']} {facts['version']}"))
    print(clean(f"manifest: {done.manifest} (a key to re-identification: keep it private, never publish it)"))
    if done.redone:
        print(f"{done.redone} were made again: {facts['system']} is not the one that had made them")
    if done.removed:
        print(f"{done.removed} outputs of an earlier run have no usable source any more and were removed")
    if done.scaled:
        print(f"scaled down, because they were beyond full scale: {done.scaled}; the manifest says by how much")
    print_problems(done.problems, "the manifest")
    if describe := getattr(anonymizer, "describe", None):
        print(clean(f"{anonymizer.name}: {describe()}"))
