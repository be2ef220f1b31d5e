"""The model card: what a model was made of, and what is not to be expected from it."""

from __future__ import annotations

from pathlib import Path

from veilmeter.anonymizers.xvector_pool.model import VoiceModel
from veilmeter.core.files import write_text

NAME = "MODEL_CARD.md"


def text(model: VoiceModel) -> str:
    """In Markdown, from what training wrote into the model."""
    about = dict(model.card)
    settings = about.get("settings", {})
    people = ", ".join(f"{count} {gender}" for gender, count in about.get("speakers", {}).items())
    shape = model.converter.shape
    rows = [
        ("System", "xvector-pool, inspired by baseline B1 of the VoicePrivacy challenges (it is not B1)"),
        ("Data", f"{about.get('corpus')}: {about.get('utterances')} utterances, {about.get('minutes')} minutes"),
        ("Speakers", people),
        ("License of the data", about.get("license", "not stated")),
        (
            "Network",
            f"{model.converter.size:,} parameters: {len(model.converter.members)} networks whose mean is taken, "
            f"each with a bottleneck of {shape.bottleneck} channels",
        ),
        ("Words", f"layer {model.layer} of Moonshine base's encoder (MIT; fetched, not part of the model)"),
        ("Vocoder", "WORLD, 40 mel-cepstra and one band of aperiodicity every 10 ms, 16 kHz"),
        ("Speaker vector", f"CAM++, whitened to {shape.speaker} dimensions"),
        ("Training", ", ".join(f"{key} {value}" for key, value in settings.items())),
        (
            "Loss",
            f"{about.get('loss')} (error of the outputs and half that of their movement, in standard deviations)",
        ),
        ("Pitch from the x-vector", f"R² {about.get('f0_r_squared')} on left-out speakers"),
        (
            "Pool",
            f"{len(model.pool)} voices, none of a real person: drawn from normal distributions fitted to the speakers",
        ),
        (
            "Largest cosine of a pool voice with a training speaker",
            f"{about.get('largest_cosine_of_pool_and_training_speakers')} "
            f"({about.get('drawn_voices_rejected_as_too_close')} closer draws were thrown away)",
        ),
        ("Made with", f"veilmeter {about.get('veilmeter')}"),
    ]
    return "\n".join(
        [
            "# Model card",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {str(value).replace('|', '/')} |" for name, value in rows),
            "",
            "What it is for: a baseline to compare voice anonymizers with, and a safeguard to try measures on. It",
            "hides who speaks from an attacker who does not adapt, and much less from one who does; measure before",
            "you rely on it. The speech it makes sounds like a vocoder.",
            "",
        ]
    )


def write(model: VoiceModel, path: str | Path) -> None:
    write_text(path, text(model))
