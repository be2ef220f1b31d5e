"""What the channels of speech are held against: the same attacker on original speech, and one that knows nobody.

On original speech it finds what there was to hide. With its known recordings dealt to people at random it must be at
chance: whatever it found then would be found without knowing anybody.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veilmeter.assessment.attack import Job
from veilmeter.assessment.attackers import AttackerPlanner
from veilmeter.assessment.scoring import AttackScoring
from veilmeter.attacks.base import AttackerRun, Material
from veilmeter.attacks.knowledge import Attacker
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings

MEASURES = ("scores", "linkability", "ranks")


def on_original(planner: AttackerPlanner, known: Attacker) -> Job:
    """The attacker where nothing was anonymized: its copies and the trials are original recordings."""
    job, material = _attack(planner, known)
    views = {
        name: _clear(view, planner.further[name]) for name, view in material.views.items() if name in planner.further
    }
    clear = replace(_clear(material, planner), views=views)
    test = planner.case.tried(planner.case.original)
    return _control(planner, job, clear, test, "on original speech")


def with_shuffled_people(planner: AttackerPlanner, known: Attacker) -> Job:
    """The attacker with the recordings that it knows people by dealt to them at random, as many to each as before."""
    job, material = _attack(planner, known)
    order = np.random.default_rng([planner.settings.seed, 21]).permutation(len(material.candidates))
    views = {name: _dealt(view, order) for name, view in material.views.items()}
    return _control(planner, job, replace(_dealt(material, order), views=views), job.test, "with shuffled people")


def _attack(planner: AttackerPlanner, known: Attacker) -> tuple[Job, Material]:
    job = planner.job(known)
    if not isinstance(job.scoring, AttackScoring):
        raise InputError(f"the {known.name} attacker learns nothing from people's own recordings")
    return job, job.scoring.material


def _control(planner: AttackerPlanner, job: Job, material: Material, test: Embeddings, where: str) -> Job:
    assert isinstance(job.scoring, AttackScoring)
    scoring = replace(job.scoring, material=material)
    measure_options = replace(planner.measure_options, measures=MEASURES, groups={}, added=())
    attacker = replace(job.attacker, name=f"{job.attacker.name} {where}", apart=True)
    mask = planner.case.protocol.mask(scoring.names, list(test.utterances))
    return Job(attacker=attacker, test=test, scoring=scoring, options=measure_options, mask=mask)


def _clear(material: Material, planner: AttackerPlanner) -> Material:
    trials = planner.case.tried(planner.case.original)
    copies = AttackerRun(vectors=material.candidates, draw="utterance", name="original speech", certain=True)
    return replace(material, trials=trials.vectors, runs=(copies,), others=None, pseudonyms=None)


def _dealt(material: Material, order: np.ndarray) -> Material:
    known = material.candidates
    return replace(material, candidates=Embeddings(known.vectors, known.utterances, known.speakers[order]))
