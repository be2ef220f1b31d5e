"""The annex for the file: every text that is not the sentence of a finding, by key.

Another language is another module with the same keys, such as `wording.french.annex`. Names in braces are filled in.
"""

from __future__ import annotations

TEXTS = {
    # --- chapters
    "controller.title": "Controller and legal basis",
    "release.title": "The release",
    "likelihood.title": "Likelihood and severity per criterion",
    "attackers.title": "Likelihood and severity per attacker",
    "limit.title": "Limit for the risk",
    "method.title": "Method",
    "reliance.title": "Reliance",
    "residual.title": "Residual risk",
    "mitigations.title": "Mitigations",
    "lawyer.title": "Open questions for a lawyer",
    "review.title": "Advice, review and incidents",
    "sign.title": "Decision to sign",
    # --- entries that the controller makes
    "entry.controller": "Controller",
    "entry.contact": "Contact",
    "entry.purpose": "Purpose of the release",
    "entry.form": "Form of the release",
    "entry.legal_basis": "Legal basis",
    "entry.article_9": "Special categories of data (GDPR, Article 9)",
    "entry.people": "Categories of people (patients, minors, staff)",
    "entry.third_countries": "Third countries, and safeguards for transfers",
    "entry.retention": "Retention of original and released speech",
    "entry.safeguards": "Safeguards beside anonymization (contracts, access, deletion)",
    "entry.necessity": "Necessity and proportionality",
    "entry.route": "Route (Guidelines 02/2026, draft)",
    "entry.severity": "Severity for the people concerned",
    "entry.likelihood": "Likelihood as rated by the controller",
    "entry.scale": "Scale of severity and likelihood",
    "entry.officer": "Data protection officer",
    "entry.advice": "Advice of the data protection officer",
    "entry.consultation": "Prior consultation of an authority (GDPR, Article 36)",
    "entry.decided_by": "Decided by",
    "entry.review_date": "To be assessed again before",
    "entry.review_triggers": "Events that lead to an earlier assessment",
    "entry.incidents": "If somebody is recognized: who is told, who acts",
    # --- the release
    "release.what": "What would be released",
    "release.amount": "People and recordings",
    "release.assessed": "Assessed",
    "release.anonymizer": "Anonymizer and version",
    "release.recipients": "Recipients",
    # --- likelihood and severity
    "likelihood.note": "The likelihood is that of the strongest attacker that was run, with its 95 % interval.",
    "likelihood.criterion": "criterion",
    "likelihood.attack": "attack",
    "likelihood.likelihood": "likelihood",
    "likelihood.severity": "severity for the people concerned",
    "attackers.attacker": "attacker",
    "attackers.effort": "what it takes",
    "attackers.severity": "severity, if this attacker is realistic",
    "attackers.not_measured": "not measured",
    "limit.none": "No limit was chosen for this assessment. A regulator's guidance may name one: the European Medicines Agency's "
    "guidance on Policy 0070 (EMA/90915/2016) and Health Canada's on the public release of clinical information work with a "
    "probability of 9 % for the public release of clinical reports. Whether this figure suits recordings of voices has to be "
    "justified.",
    "residual.note": "The risk that remains for the people concerned, from the attackers that were run and from what was not "
    "tested. Severity and likelihood are rated by the controller, not by the measurement.",
    "residual.scale": "{scale} (the scale of the CNIL's PIA method)",
    "residual.not_tested": "Not tested: {reason}",
    "reliance.not_checked": "Not checked: {check}. {reason}",
    "mitigations.note": "Derived from the results by fixed rules; please fill in which of them are taken.",
    "mitigations.measure": "measure",
    "mitigations.why": "why",
    "mitigations.taken": "taken? by when, by whom",
    # --- method
    "method.text": "{searched} searched for among {enrolled} known people; their recordings were divided into enrollment and "
    "trials ({split}). {training}A 95 % interval shows how far the figure would vary with other people. The technical part "
    "defines every measure; results.json contains every number and what is needed to repeat the run.",
    "method.person": "1 person was",
    "method.people": "{count} people were",
    "method.cross-validation by speaker": "Attackers that learn were trained on other people than those they searched for. ",
    "method.separate corpus": "Attackers that learn were trained on separate recordings. ",
    # --- the decision to sign
    "sign.note": "Measurements would support one option or speak against another; they do not decide. Nothing is ticked in "
    "advance. This is the one place to sign: the rest of the report is its evidence.",
    "sign.entry": "entry",
    "sign.remarks": "remarks, name, date, signature",
    "sign.question": "Question",
    "sign.ask": "May these recordings be given to the recipients that are named in the annex, and as what?",
    "sign.option_1": "Share; considered anonymous for this recipient, for the reasons given here",
    "sign.option_2": "Share as personal data, under a contract",
    "sign.option_3": "Do not share",
    "sign.option_4": "Test more before deciding",
    "sign.no_limit": "No limit was chosen for this assessment.",
    "sign.assessed_by": "Assessed by",
    "sign.version": "Version of this document",
    "sign.digest": "SHA-256 of results.json",
    "fill_in": "Click here to fill in.",
    # --- the file for the PIA tool
    "pia.processing": "Release of anonymized recordings of speech",
    "pia.data": "Anonymized recordings of speech: what is left of the voices, and what is said.",
    "pia.measure": "Voice anonymization",
    "pia.likelihood": "These are measurements. Please rate severity and likelihood on the scale of your organization.",
}  # fmt: skip
