"""How the options of the commands that measure scores and vectors are tried."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tests.assessment import synthetic_voices as voices
from tests.trying_options import CommandTrials, run_command, words

from veilmeter.core.option_groups import Figures
from veilmeter.core.options import options_of
from veilmeter.data.formats.vectors import write_embeddings

PEOPLE, EACH, DIMENSION = 8, 4, 6


def write_inputs(folder: Path) -> None:
    """Vectors of eight people with gender and sessions, and score files of three kinds with a key."""
    known = voices.original(PEOPLE, EACH, DIMENSION)
    other = voices.original(PEOPLE, EACH, DIMENSION, noise=0.5, seed=3)
    sides = {
        "known": known, "hidden": voices.partly(known), "again": voices.partly(known, seed=2),
        "turned": voices.partly(known.with_vectors(-known.vectors)),
        "other": other, "other-hidden": voices.partly(other, seed=1),
        "far": voices.original(5, EACH, DIMENSION, seed=5, prefix="d"),
    }  # fmt: skip
    for name, side in sides.items():
        write_embeddings(side, folder / f"{name}.npz")
    spoilt = known.vectors.copy()
    spoilt[3] = np.nan
    with np.load(folder / "known.npz") as arrays:
        np.savez(folder / "spoilt.npz", **{name: spoilt if name == "vectors" else arrays[name] for name in arrays})
    rng = np.random.default_rng(0)
    pairs = [(person, utterance) for person in known.names for utterance in known.utterances]
    target = {pair: pair[1].startswith(pair[0] + "-") for pair in pairs}
    label = {True: "target", False: "nontarget"}
    for name, distance in (("scores", 1.5), ("oo", 3.0), ("pp", 1.0), ("second", 1.2)):
        lines = [
            (person, utterance, distance * target[person, utterance] + rng.normal()) for person, utterance in pairs
        ]
        (folder / name).write_text("".join(f"{a} {b} {score:.5f}\n" for a, b, score in lines))
    lines = [line.split() for line in (folder / "scores").read_text().splitlines()]
    (folder / "labeled").write_text("".join(f"{a} {b} {score} {label[target[a, b]]}\n" for a, b, score in lines))
    (folder / "key").write_text("".join(f"{a} {b} {label[target[a, b]]}\n" for a, b in pairs))
    (folder / "short-key").write_text("".join(f"{a} {b} {label[target[a, b]]}\n" for a, b in pairs[8:]))
    (folder / "more-scores").write_text((folder / "scores").read_text() + "s000 somebody-else 0.1\n")
    other_key = "".join(f"{a} {b} {label[target[a, b] and b[-1] != '0']}\n" for a, b in pairs)
    (folder / "other-key").write_text(other_key)
    (folder / "part-key").write_text("".join(f"{a} {b} {label[target[a, b]]}\n" for a, b in pairs if b[-1] != "0"))
    (folder / "who").write_text(
        "".join(f"{u} {'x' if u[-1] in '01' else ''}{u.split('-')[0]}\n" for u in known.utterances)
    )
    earlier = run_command(
        "linkability", ["--enroll", str(folder / "known.npz"), "--test", str(folder / "again.npz"), "--json"]
    )
    (folder / "earlier.json").write_text(json.dumps({**earlier.output, "inputs": {}, "warnings": []}))
    for name, side in (("map", "other-hidden"), ("other-map", "other")):
        learned = ("--clear-train", "HERE/other.npz", "--anonymized-train", f"HERE/{side}.npz")
        saved = words(*learned, "--anonymized-trials", "HERE/hidden.npz", "--jobs", 1, "--save-map", f"HERE/{name}.npz")
        run_command("invert", saved(folder))


DRAWN = frozenset({*options_of(Figures), "name", "beside"})
STRICT = frozenset({"strict"})

MEASURE = CommandTrials(
    command="measure",
    modes={
        "scores with a key": words("HERE/scores", "--trials", "HERE/key", "--resamples", 50, "--json"),
        "labels in the file": words("HERE/labeled", "--no-intervals"),
        "three sets": words(
            "--original", "HERE/oo", "--mixed", "HERE/scores", "--protected", "HERE/pp", "--trials", "HERE/key",
            "--no-intervals", "--json",
        ),
        "a second run": words("HERE/scores", "--trials", "HERE/key", "--calibrate-on", "HERE/second", "--no-intervals"),
        "streamed": words("HERE/scores", "--trials", "HERE/key", "--stream", "--json"),
        "figures": words("HERE/scores", "--trials", "HERE/key", "--no-intervals", "--figures", "HERE/out"),
        "other trials": words("HERE/scores", "--trials", "HERE/short-key", "--only-common", "--no-intervals"),
    },
    only={"figures": DRAWN, "other trials": frozenset({"only_common"})},
    guards=frozenset({"only_common"}),
    where={"figures": frozenset({"figures"})},
)  # fmt: skip

VECTORS = ("--enroll", "HERE/known.npz", "--test", "HERE/hidden.npz")
SPOILT = ("--enroll", "HERE/spoilt.npz", "--test", "HERE/hidden.npz")

LINKABILITY = CommandTrials(
    command="linkability",
    modes={
        "vectors": words(*VECTORS, "--jobs", 1, "--json"),
        "a table": words(*VECTORS, "--jobs", 1, "--no-intervals"),
        "figures": words(*VECTORS, "--jobs", 1, "--no-intervals", "--figures", "HERE/out"),
        "a vector is spoilt": words(*SPOILT, "--no-intervals", "--jobs", 1, "--json"),
    },
    only={"figures": DRAWN, "a vector is spoilt": STRICT},
    guards=frozenset({"strict"}),
    where={"figures": frozenset({"figures"})},
)  # fmt: skip

SINGLING_OUT = CommandTrials(
    command="singling-out",
    modes={
        "vectors": words(*VECTORS, "--json"),
        "a table": words(*VECTORS, "--no-intervals", "--no-control"),
        "figures": words(*VECTORS, "--no-intervals", "--no-control", "--figures", "HERE/out"),
        "a vector is spoilt": words(*SPOILT, "--no-intervals", "--json"),
    },
    only={"figures": DRAWN, "a vector is spoilt": STRICT},
    guards=frozenset({"strict"}),
    where={"figures": frozenset({"figures"})},
)  # fmt: skip

SIMILARITY = CommandTrials(
    command="similarity",
    modes={
        "vectors": words("--original", "HERE/known.npz", "--anonymized", "HERE/hidden.npz", "--jobs", 1, "--json"),
        "a table": words(
            "--original", "HERE/known.npz", "--anonymized", "HERE/hidden.npz", "--jobs", 1, "--no-intervals"
        ),
        "sessions": words(
            "--original", "HERE/known.npz", "--anonymized", "HERE/hidden.npz", "--jobs", 1, "--sessions", "--csv"
        ),
        "a vector is spoilt": words(
            "--original", "HERE/spoilt.npz", "--anonymized", "HERE/hidden.npz", "--jobs", 1, "--no-intervals", "--json"
        ),
        "figures": words(
            "--original", "HERE/known.npz", "--anonymized", "HERE/hidden.npz", "--jobs", 1, "--no-intervals",
            "--figures", "HERE/out",
        ),
    },
    only={"figures": DRAWN, "a vector is spoilt": STRICT},
    guards=frozenset({"strict"}),
    where={"figures": frozenset({"figures"})},
)  # fmt: skip

INVERT = (
    "--clear-train", "HERE/other.npz", "--anonymized-train", "HERE/other-hidden.npz",
    "--anonymized-trials", "HERE/hidden.npz", "--jobs", 1,
)  # fmt: skip
CLEAR = ("--clear-trials", "HERE/known.npz")
INVERTING = CommandTrials(
    command="invert",
    modes={
        "clear trials": words(*INVERT, *CLEAR, "--shuffles", 2, "--no-intervals", "--json"),
        "enrolled people": words(*INVERT, "--enroll", "HERE/known.npz", "--trials", "HERE/key", "--no-intervals"),
        "both": words(*INVERT, *CLEAR, "--enroll", "HERE/known.npz", "--no-intervals", "--shuffles", 0, "--csv"),
        "without pairs": words(
            *INVERT, *CLEAR, "--method", "wasserstein", "--shuffles", 0, "--no-intervals", "--json"
        ),
        "a stored map": words(
            "--load-map", "HERE/map.npz", "--anonymized-trials", "HERE/hidden.npz", *CLEAR, "--jobs", 1, "--json"
        ),
        "a vector is spoilt": words(
            *INVERT, "--clear-trials", "HERE/spoilt.npz", "--shuffles", 0, "--no-intervals", "--json"
        ),
        "an EER above one half": words(
            "--load-map", "HERE/map.npz", "--anonymized-trials", "HERE/turned.npz", "--enroll", "HERE/known.npz",
            "--no-intervals", "--jobs", 1,
        ),
        "figures": words(*INVERT, *CLEAR, "--no-intervals", "--shuffles", 0, "--figures", "HERE/out"),
    },
    only={
        "figures": DRAWN,
        "a vector is spoilt": STRICT,
        "an EER above one half": frozenset({"fold_eer"}),
        "without pairs": frozenset({"learning_curve", "label_noise", "shuffles", "seeds"}),
    },
    guards=frozenset({"strict", "fold_eer"}),
    where={"figures": frozenset({"figures", "enrolled people"})},
)  # fmt: skip

TRIALS = {trials.command: trials for trials in (MEASURE, LINKABILITY, SINGLING_OUT, SIMILARITY, INVERTING)}
