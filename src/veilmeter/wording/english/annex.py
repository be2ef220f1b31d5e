"""The annex for the file: every text that is not the sentence of a finding, by key.

Another language is another module with the same keys, such as `wording.french.annex`. Names in braces are filled in.
"""

from __future__ import annotations

from veilmeter.wording.english import page

TEXTS = {
    "sentence.about": "{whose}: {words}",
    "sentence.list": "; ",
    "page.title": "Assessment of anonymized speech",
    "page.skip": "Skip to the content",
    "page.made": "Made with veilmeter {version}",
    "page.complete": page.NOTES["complete"],
    "page.nobody": page.NOTES["footer_nobody"],
    "annex.title": page.TITLES["annex"],
    "annex.note": page.NOTES["annex"],
    **{f"criterion.{name}": page.full_title(page.criterion_title(name, ""), name) for name in page.CRITERIA},
    **{f"attack.{name}": attack for name, attack in page.ATTACKS.items()},
    **{f"level.{level}": word for level, word in {**page.LEVELS, "missing": page.NOT_MEASURED}.items()},
    **{f"missing.{reason}": text for reason, text in page.MISSING.items()},
    **{f"missing_attack.{name}": text for name, text in page.MISSING_ATTACKS.items()},
    "worst_case": "Worst case: {sentence}",
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
    "entry.legal_basis": "Legal basis (anonymizing is processing, too)",
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
    "release.size": "{people:person/people}, {recordings:recording}",
    "release.minutes": "{size}, {minutes:minute} of speech",
    "release.hours": "{size}, {hours} hours of speech",
    "release.version": "{name}, version {version}",
    "release.people": "{people:person/people}",
    "release.what": "What would be released",
    "release.amount": "People and recordings",
    "release.assessed": "Assessed",
    "release.anonymizer": "Anonymizer and version",
    "release.recipients": "Recipients",
    "stated.simplified": "simplified",
    "stated.contextual": "contextual",
    "stated.negligible": "negligible",
    "stated.limited": "limited",
    "stated.significant": "significant",
    "stated.maximum": "maximum",
    # --- recipients
    "recipients.title": "Recipients",
    "recipients.declared": "Recipients as the controller declares them. Whether somebody can be identified depends on who holds "
    "the data (CJEU, C-413/23 P, EDPS v SRB, 4 September 2025). A figure is how often the strongest attacker that the recipient "
    "could be succeeds in 100 attempts, with its 95 % interval.",
    "recipients.assumed": "No recipient was declared. Whether somebody can be identified depends on who holds the data (CJEU, "
    "C-413/23 P, EDPS v SRB, 4 September 2025), so these are roles that guidance on anonymization names, each with what it may be "
    "assumed to have; please replace them by the real recipients. A figure is how often the strongest attacker that the recipient "
    "could be succeeds in 100 attempts, with its 95 % interval.",
    "recipients.route_": "Route (EDPB Guidelines 02/2026, a draft of 7 July 2026 for public consultation): not stated. The first "
    "row is the simplified route, which assumes the strongest attacker; the rows below it are the contextual route.",
    "recipients.route_simplified": "Simplified route (EDPB Guidelines 02/2026, a draft of 7 July 2026 for public consultation): "
    "the strongest attacker is assumed. What follows: the first row applies to every recipient, and what a recipient lacks is not "
    "an argument; the other rows are for information. If a criterion is not met, the draft asks for further analysis. Attackers "
    "that were not run are a gap in this route.",
    "recipients.route_contextual": "Contextual route (EDPB Guidelines 02/2026, a draft of 7 July 2026 for public consultation): "
    "each recipient is assessed by what it can have. What follows: that a recipient lacks something is a claim to document and to "
    "review, which contracts complement but do not replace; the figures hold for these recipients alone; a recipient who gets "
    "more, or passes the speech on, has to be assessed again. The first row is the strongest attacker, for comparison.",
    "recipients.recipient": "recipient",
    "recipients.has": "what it has, and the attackers that were run for it",
    "recipients.means": "{has}. Attackers: {attackers}.",
    "recipients.original_speech": "original speech",
    "recipients.anonymizer": "the anonymizer",
    "recipients.labels": "the speakers of some released recordings",
    "recipients.pseudonyms": "pseudonyms that join one person's recordings",
    "recipients.candidates": "{count} candidates",
    "recipients.nothing": "nothing but the release",
    "recipients.linking": "{level}: {figure} of 100; guessing {guessing} ({attacker}; {candidates} candidates; {length:recording} "
    "at a time).",
    "recipients.linking_model": "{level}: {figure} of 100 according to a model; guessing {guessing} ({attacker}; {candidates} "
    "candidates; {length:recording} at a time).",
    "recipients.linking_unknown": "not known for {candidates} candidates: too few people were assessed.",
    "recipients.person": "Person found most often: {figure} of 100, among {among}.",
    "recipients.person_by_chance": "Person found most often: {figure} of 100, among {among}, which guessing explains.",
    "recipients.singling_out": "{level}: {figure} of 100 more than a rule made without knowing anybody ({attacker})",
    "recipients.inference": "{level}: {attribute}, {figure} of 100; guessing {guessing}",
    "recipients.none": "not tested for this recipient",
    "recipients.no_attacker": "none",
    "recipients.not_run": "Not run, although these recipients have what it takes: {attackers} ({names}).",
    "recipients.no_inference": "Inference was tested with an attacker who learns from other people's anonymized speech. "
    "Recipients who have neither the anonymizer nor know the speakers of released recordings lack that speech; for them, "
    "inference was not tested.",
    "recipients.nobody": "{name}: every attacker that was run needs more than this recipient has. Nothing was tested for it, "
    "which does not mean that nobody can be recognized.",
    "recipients.more_candidates": "{name}: has {candidates} candidates, but at most {most} were run. Beyond that, the figure is a "
    "model's estimate.",
    "recipients.fewer_candidates": "{name}: has {candidates} candidates, but the shortest list that was run has {least}. With "
    "fewer candidates, recognizing somebody is easier; the figure is interpolated.",
    "recipients.pseudonyms_not_run": "{name}: sees which recordings are by one person, but no attacker that was run put several "
    "recordings together. Assess with --lengths 1,3 or more, or with the attacker adaptive-pseudonyms.",
    "recipients.joins_anyway": "{name}: is declared without pseudonyms, but released recordings of one person were linked to each "
    "other. It is treated as a recipient who can put them together.",
    "recipients.released_run": "{name}: has the anonymizer, but the attackers used the released run instead of running it again. "
    "If it draws voices at random, this is not what the recipient would get.",
    "recipients.anonymizer_not_run": "{name}: knows what the anonymizer makes of speech, but no attacker that was run uses this.",
    "recipients.attackers_of_nobody": "Attackers that were run, and that no declared recipient could be: {attackers}. Please state "
    "why nobody can get what they need.",
    "recipients.other_list": "The first page assumes {candidates} candidates, which no declared recipient has.",
    "cast.controller": "Controller",
    "cast.contractual_recipient": "Recipient under a contract",
    "cast.motivated_intruder": "Motivated intruder",
    "cast.insider": "Insider, such as a rogue employee",
    "cast.public": "The public",
    "cast.anybody": "Anybody: the strongest attacker",
    # --- inference with control
    "inference.title": "Inference with control",
    "inference.note": "What can be inferred with a person's recordings beyond what can be inferred without them. The control is the "
    "same guess from recordings of somebody else; the risk is the share of what it leaves open that the person's own recordings "
    "settle (the risk of anonymeter). Attributes that could not be inferred are listed under residual risk.",
    "inference.attribute": "attribute",
    "inference.with": "right with the recordings, of 100",
    "inference.without": "right without them (control, and 90 % of its draws)",
    "inference.beyond": "risk beyond the control, in %",
    "inference.original": "right from original speech",
    "inference.combined": "All attributes that do not change within a person together, as inferred: {combinations:combination} "
    "among {people:person/people}; {alone:person is/people are} alone with theirs, and for {alone_and_right} of them every inferred "
    "attribute is right.",
    "inference.sharing": "The rarest combination is shared by {smallest:person/people}; half of the people are in a combination of at "
    "least {typical}.",
    "inference.combined_one": "Fewer than two attributes that do not change within a person were inferred, so that combinations of "
    "them were not counted.",
    # --- groups and individuals
    "individuals.title": "Groups and individuals",
    "individuals.note": "A mean can hide a group or a person. Guidelines 02/2026 (a draft) ask about all individuals, and success "
    "against one of them counts. Everybody and the groups: {length:recording} at a time. The person found most often was looked for "
    "among {people:person/people} and by {attackers:attacker}; the interval allows for this.",
    "individuals.who": "who",
    "individuals.among": "candidates",
    "individuals.linked": "linked, of 100 recordings",
    "individuals.guessing": "guessing",
    "individuals.attacker": "attacker",
    "individuals.everybody": "Everybody",
    "individuals.person": "The person found most often",
    "individuals.by_chance": "The person found most often, as guessing among so many people explains",
    # --- likelihood and severity
    "likelihood.note": "The likelihood is that of the strongest attacker that was run, with its 95 % interval.",
    "likelihood.criterion": "criterion",
    "likelihood.attack": "attack",
    "likelihood.likelihood": "likelihood",
    "likelihood.severity": "severity for the people concerned",
    "attackers.unknown": "the attacker called {name}",
    "attackers.attacker": "attacker",
    "attackers.effort": "what it takes",
    "attackers.note": "Share of recordings linked to the right person, among {candidates} candidates and with {length:recording} "
    "at a time.",
    "attackers.cost": "what it took here",
    "attackers.took_attack": "{seconds} processor seconds for the attack and its measurement",
    "attackers.took_extraction": "{seconds} for extracting voices",
    "attackers.took_anonymizer": "{seconds} for running the anonymizer",
    "attackers.unknown_attack": "processor time of the attack not recorded",
    "attackers.unknown_extraction": "extracting voices not timed here",
    "attackers.unknown_anonymizer": "running the anonymizer not timed here",
    "attackers.machine": "{system}, {cores:core}",
    "attackers.unknown_machine": "not recorded",
    "attackers.used": "{enrollment} known and {trials} released recordings",
    "attackers.cost_note": "Means reasonably likely to be used are a question of cost, time and technology (GDPR, recital 26). "
    "Processor time was measured here; that for extraction and for the anonymizer is the measured rate times the recordings that "
    "the attack needs, and is missing where vectors or anonymized recordings were given. Machine: {machine}. Training a public "
    "voice recognizer or the anonymizer itself is not counted. Attacks get cheaper.",
    "attackers.margin": "Margin for better attackers: the strongest attacker of the published papers ({paper}) links {found} of "
    "100 recordings, the strongest that was run here ({best}) {more}. What better methods added so far, later ones may add again. "
    "To see what attackers gained since an earlier assessment, compare the two runs.",
    "attackers.no_margin": "Margin for better attackers: no attacker that was run here links more than the strongest of the "
    "published papers ({paper}, {found} of 100 recordings). This does not bound what later attackers will find. To see what "
    "attackers gained since an earlier assessment, compare the two runs.",
    "attackers.chosen": "For everybody, this file counts {found} of 100: which figure counts is chosen on some of the people, and its "
    "value is that on the others, because the highest of several figures is too high on average.",
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
    # --- cross-references, in the template for authorities
    "standards.title": "Cross-reference to standards",
    "standards.note": "Where clauses and terms of ISO/IEC 27559:2022, ISO/IEC 24745:2022 and ISO/IEC 30136:2018 are answered in this "
    "file. It is a guide to the file, not a claim of conformity.",
    "standards.clause": "clause or term",
    "standards.chapters": "chapters of this file",
    "standards.27559_6": "ISO/IEC 27559:2022, clause 6: context (threats, motives, transparency, harm)",
    "standards.27559_7": "ISO/IEC 27559:2022, clause 7: data (principals, attributes, attack modeling, population or sample)",
    "standards.27559_8": "ISO/IEC 27559:2022, clause 8: identifiability (quantify, test adversarially, mitigate, re-evaluate)",
    "standards.27559_9": "ISO/IEC 27559:2022, clause 9: governance (roles, monitoring, incidents)",
    "standards.24745_unlinkability": "ISO/IEC 24745:2022, unlinkability: linking recordings to a person, and to each other",
    "standards.24745_irreversibility": "ISO/IEC 24745:2022, irreversibility: undoing the anonymization",
    "standards.30136_success": "ISO/IEC 30136:2018, attack success: Linkability, per attacker and recipient",
    "standards.30136_leakage": "ISO/IEC 30136:2018, information leakage: information disclosed",
    "intruder.title": "Motivated intruder test",
    "intruder.note": "A checklist based on the anonymization guidance of the Information Commissioner's Office (UK, 28 March "
    "2025). The intruder is reasonably competent, has no prior knowledge, and uses what is public. What this run shows is filled "
    "in.",
    "intruder.item": "question",
    "intruder.run": "what this run shows",
    "intruder.answer": "answer, by whom, when",
    "intruder.means": "What may the intruder be assumed to have?",
    "intruder.recordings": "Which recordings of the people are public (talks, videos, voice messages)?",
    "intruder.anonymizer": "Is the anonymizer public, or can it be bought?",
    "intruder.words": "Could what is said, or who is mentioned, identify people to those who know them?",
    "intruder.attempts": "Which attempts were made, and with which outcome?",
    "intruder.independent": "Were further attempts made by somebody who did not prepare the release?",
    "intruder.repeat": "When is the test repeated?",
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
