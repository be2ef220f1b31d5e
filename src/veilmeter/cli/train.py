"""`veilmeter train xvector-pool CORPUS OUT`: an anonymizer's model from any corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilmeter.cli.command import Given
from veilmeter.core import option_groups
from veilmeter.core.devices import choose_device
from veilmeter.core.options import declare
from veilmeter.data.corpus import CorpusReading

SYSTEMS = ("xvector-pool",)


@dataclass(frozen=True, kw_only=True)
class TrainOptions(CorpusReading):
    """The options of the command."""

    system: str = declare(help="System to train: xvector-pool.", argument=True, choices=SYSTEMS)
    corpus: Path = declare(help="Corpus of many speakers in any known layout.", argument=True)
    out: Path = declare(help="Folder for the model; a stopped run continues there.", argument=True)
    steps: int = declare(2000, help="Training steps of the network.", least=1, example=2)
    voices: int = declare(128, help="Voices to draw for the pool, per gender.", least=1, example=3)
    layer: int = declare(
        8, help="Layer of the recognizer's encoder that gives the words; early ones leak more.", least=1, example=3
    )
    bottleneck: int = declare(
        32, help="Channels for the words: more sound better and leak more of the speaker.", least=1, example=3
    )
    license: str = declare("not stated", help="License of the corpus, for the model card.", example="CC0")
    seed: int = option_groups.seed()
    jobs: int | None = option_groups.jobs()
    offline: bool = option_groups.offline()
    device: str = option_groups.device()
    quiet: bool = option_groups.quiet()


OPTIONS = (TrainOptions,)


def command(given: Given) -> None:
    """Train the model of an anonymizer.

    Extracts features of every utterance, trains the network, and writes OUT/model.safetensors. The model's pool
    contains no real person: its voices are drawn from a distribution fitted to the corpus's speakers, and none is
    as close to a speaker as two recordings of one person are to each other.
    """
    from contextlib import ExitStack

    from veilmeter.anonymizers.xvector_pool.training import CARD, MODEL, TrainingSettings, train, write_card
    from veilmeter.cli.shared_options import exit_if_left_out, read_given, remarks_on_reading
    from veilmeter.cli.terminal import Progress, show_progress
    from veilmeter.core.engine import open_engine
    from veilmeter.core.text import clean
    from veilmeter.wording import sentence
    from veilmeter.wording.numbers import count

    options = given.build(TrainOptions)
    choose_device(options.device)
    settings = TrainingSettings(
        seed=options.seed, steps=options.steps, voices_per_gender=options.voices, layer=options.layer,
        bottleneck=options.bottleneck,
    )  # fmt: skip
    recordings = read_given(options.corpus, options)
    engine = open_engine(options.jobs)
    bars: dict[str, Progress] = {}
    units = {"features": "utterances", "network": "steps"}
    on_screen = ExitStack()

    def tell(step: str, done: int, total: int, remark: str) -> None:
        if step not in bars:
            on_screen.close()  # one bar at a time
            bars[step] = on_screen.enter_context(show_progress(step, unit=units[step], quiet=options.quiet))
        bars[step](done, total)

    try:
        model = train(
            recordings, options.out, settings, engine=engine, offline=options.offline, progress=tell,
            notes={"license": options.license},
        )  # fmt: skip
    finally:
        on_screen.close()
        engine.close()
    write_card(model, options.out / CARD)
    print(clean(f"{options.out / MODEL}: {model.card['parameters']:,} parameters, loss {model.card['loss']}"))
    left_out = model.card.get("utterances_left_out", 0)
    if left_out:
        print(clean(f"{count(left_out, 'recording')} left out; list with: veilmeter check {options.corpus}"))
    for remark in remarks_on_reading(given, options, recordings):
        print(f"! {sentence(remark)}")
    print(clean(f"use it with: veilmeter anonymize CORPUS OUT --system xvector-pool --model {options.out / MODEL}"))
    exit_if_left_out(left_out)
