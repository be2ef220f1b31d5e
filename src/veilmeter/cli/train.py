"""`veilmeter train xvector-pool CORPUS OUT`: an anonymizer's model from any corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmeter.cli import options
from veilmeter.core.errors import InputError

SYSTEMS = ("xvector-pool",)


def command(
    ctx: typer.Context,
    system: Annotated[str, typer.Argument(help="What to train: xvector-pool.")],
    corpus: Annotated[Path, typer.Argument(help="A corpus of many speakers, in any layout that veilmeter knows.")],
    out: Annotated[Path, typer.Argument(help="The folder for the model; a stopped run goes on from what is there.")],
    layout: options.Layout = None,
    part: options.Part = None,
    suffix: options.Suffix = None,
    root: options.Roots = None,
    columns: options.Columns = None,
    channel: options.Channel = None,
    steps: Annotated[int, typer.Option(help="Training steps of the network.", min=1)] = 2000,
    voices: Annotated[int, typer.Option(help="Voices to draw for the pool, for each gender.", min=1)] = 128,
    layer: Annotated[
        int, typer.Option(help="Layer of the recognizer's encoder that gives the words; early ones leak more.", min=1)
    ] = 8,
    bottleneck: Annotated[
        int, typer.Option(help="Channels for what is said: more sound better and leak more of the speaker.", min=1)
    ] = 32,
    license: Annotated[str, typer.Option(help="The corpus's license, for the model card.")] = "not stated",
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    offline: options.Offline = False,
    quiet: options.Quiet = False,
) -> None:
    """Train an anonymizer's model: features of every utterance, then the network, then model.safetensors in OUT.

    The pool in it holds no real person: its voices are drawn from a distribution fitted to the corpus's speakers, and
    none is as close to a speaker as two recordings of one person are.
    """
    if system not in SYSTEMS:
        raise InputError(f"{system!r} can't be trained", fix=f"choose {', '.join(SYSTEMS)}")
    from contextlib import ExitStack

    from veilmeter.anonymizers.xvector_pool import card
    from veilmeter.anonymizers.xvector_pool.training import MODEL, TrainingSettings, train
    from veilmeter.cli.corpora import read_given, remarks_on_reading
    from veilmeter.cli.progress import Progress, shown
    from veilmeter.core.engine import open_engine
    from veilmeter.core.text import clean
    from veilmeter.wording import sentence

    settings = TrainingSettings(seed=seed, steps=steps, voices_per_gender=voices, layer=layer, bottleneck=bottleneck)
    recordings = read_given(corpus, layout, part=part, suffix=suffix, root=root, columns=columns, channel=channel)
    engine = open_engine(jobs)
    bars: dict[str, Progress] = {}
    units = {"features": "utterances", "network": "steps"}
    on_screen = ExitStack()

    def tell(step: str, done: int, total: int, remark: str) -> None:
        if step not in bars:
            on_screen.close()  # one bar at a time
            bars[step] = on_screen.enter_context(shown(step, unit=units[step], quiet=quiet))
        bars[step](done, total)

    try:
        model = train(
            recordings, out, settings, engine=engine, offline=offline, progress=tell, notes={"license": license}
        )
    finally:
        on_screen.close()
        engine.close()
    card.write(model, out / card.NAME)
    print(clean(f"{out / MODEL}: {model.card['parameters']:,} parameters, loss {model.card['loss']}"))
    if left_out := model.card.get("utterances_left_out"):
        print(clean(f"{left_out} recordings could not be used and were left out: veilmeter check {corpus} lists them"))
    for remark in remarks_on_reading(ctx, recordings):
        print(f"! {sentence(remark)}")
    print(clean(f"use it with: veilmeter anonymize CORPUS OUT --system xvector-pool --model {out / MODEL}"))
