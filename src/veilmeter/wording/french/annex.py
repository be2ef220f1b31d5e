"""The annex for the file in French: texts with the same keys as `wording.english.annex`, checks and attackers."""

from __future__ import annotations

from veilmeter.attacks.attacker import PlainWords

SMALL_WORDS = {
    "and": "et", "or": "ou", "yes": "oui", "no": "non", "a speaker": "un locuteur", "speakers": "locuteurs",
    "a recording": "un enregistrement", "recordings": "enregistrements", "a file": "un fichier", "files": "fichiers",
    "an attribute": "un attribut", "attributes": "attributs", "a value": "une valeur", "values": "valeurs",
    "gender": "genre", "sex": "sexe", "age": "âge", "age_band": "tranche d'âge", "age_group": "tranche d'âge",
    "language": "langue", "native_language": "langue maternelle", "dialect": "dialecte", "emotion": "émotion",
    "a run": "une évaluation", "runs": "évaluations", "texts": "textes",
}  # fmt: skip

TEXTS = {
    "sentence.about": "{whose} : {words}",
    "sentence.list": " ; ",
    "page.title": "Évaluation de parole anonymisée",
    "page.skip": "Aller au contenu",
    "page.made": "Établi avec veilmeter {version}",
    "page.complete": "Cette page est complète : elle ne charge rien et n'envoie rien.",
    "page.nobody": "Elle ne nomme personne.",
    "annex.title": "Annexe au dossier",
    "annex.note": "Rubriques d'un rapport d'anonymisation ou d'une analyse d'impact relative à la protection des données (AIPD), "
    "remplies à partir des résultats. Il s'agit de mesures, non d'un avis juridique.",
    "criterion.linking": "Relier des enregistrements à une personne (avis 05/2014 : corrélation ; lignes directrices 02/2026, projet : "
    "No Linkage)",
    "criterion.singling_out": "Isoler une personne (avis 05/2014 : individualisation ; lignes directrices 02/2026, projet : No Record "
    "Isolation)",
    "criterion.inference": "Déduire des attributs (avis 05/2014 : inférence ; lignes directrices 02/2026, projet : No Inference)",
    "criterion.disclosure": "Information divulguée",
    "criterion.inversion": "Inverser l'anonymisation",
    "criterion.distinctiveness": "Voix distinctes entre elles",
    "attack.linking": "l'attaquant compare chaque enregistrement anonymisé à des enregistrements de personnes connues et nomme la "
    "personne la plus semblable.",
    "attack.singling_out": "l'attaquant cherche une règle sur les voix qui ne convient qu'à une seule personne des données, même sans "
    "savoir qui elle est.",
    "attack.disclosure": "l'attaquant compare deux enregistrements et prend leur ressemblance pour un indice qu'ils proviennent "
    "ou non de la même personne.",
    "attack.inversion": "l'attaquant apprend à inverser l'anonymiseur à partir d'enregistrements connus sous les deux formes, ou de "
    "deux ensembles non appariés.",
    "attack.inference": "l'attaquant devine des attributs du locuteur à partir de la voix anonymisée.",
    "level.low": "risque proche du hasard",
    "level.raised": "risque accru",
    "level.high": "risque élevé",
    "level.unknown": "risque inconnu",
    "level.missing": "non mesuré",
    "missing.scores": "Seuls des scores ont été fournis ; ils ne disent pas {attack}. Évaluez des enregistrements ou des vecteurs.",
    "missing.left_out": "L'évaluation ne l'a pas inclus. Ajoutez {family} à --measures.",
    "missing.no_attribute": "Aucun attribut des locuteurs n'est connu. Ajoutez une colonne, telle que genre, âge ou accent, à la liste "
    "des enregistrements ou aux vecteurs.",
    "missing.few_have_attribute": "Trop peu de personnes ont le même attribut {attribute} : pour le déduire, il faut deux valeurs d'au "
    "moins {least} personnes chacune. Évaluez plus de personnes.",
    "missing.too_little": "Il y a trop peu de personnes ou d'enregistrements pour le mesurer. Évaluez plus de personnes, avec plusieurs "
    "enregistrements chacune.",
    "missing_attack.linking": "qui un attaquant nomme",
    "missing_attack.singling_out": "si une règle ne convient qu'à une seule personne",
    "missing_attack.inference": "ce qui peut être déduit d'un locuteur",
    "worst_case": "Pire cas. {sentence}",
    # --- chapitres
    "controller.title": "Responsable du traitement et base juridique",
    "release.title": "La diffusion",
    "likelihood.title": "Vraisemblance et gravité par critère",
    "attackers.title": "Vraisemblance et gravité par attaquant",
    "limit.title": "Limite du risque",
    "method.title": "Méthode",
    "reliance.title": "Fiabilité",
    "residual.title": "Risque résiduel",
    "mitigations.title": "Mesures d'atténuation",
    "lawyer.title": "Questions ouvertes pour un juriste",
    "review.title": "Avis, révision et incidents",
    "sign.title": "Décision à signer",
    # --- rubriques remplies par le responsable
    "entry.controller": "Responsable du traitement",
    "entry.contact": "Contact",
    "entry.purpose": "Finalité de la diffusion",
    "entry.form": "Forme de la diffusion",
    "entry.legal_basis": "Base juridique (l'anonymisation est elle-même un traitement)",
    "entry.article_9": "Catégories particulières de données (RGPD, article 9)",
    "entry.people": "Catégories de personnes (patients, mineurs, personnel)",
    "entry.third_countries": "Pays tiers, et garanties pour les transferts",
    "entry.retention": "Durées de conservation des enregistrements d'origine et diffusés",
    "entry.safeguards": "Garanties outre l'anonymisation (contrats, accès, effacement)",
    "entry.necessity": "Nécessité et proportionnalité",
    "entry.route": "Approche (lignes directrices 02/2026, projet)",
    "entry.severity": "Gravité pour les personnes concernées",
    "entry.likelihood": "Vraisemblance estimée par le responsable du traitement",
    "entry.scale": "Échelle de gravité et de vraisemblance",
    "entry.officer": "Délégué à la protection des données",
    "entry.advice": "Avis du délégué à la protection des données",
    "entry.consultation": "Consultation préalable de l'autorité de contrôle (RGPD, article 36)",
    "entry.decided_by": "Décidé par",
    "entry.review_date": "À réévaluer avant le",
    "entry.review_triggers": "Événements entraînant une réévaluation anticipée",
    "entry.incidents": "Si une personne est reconnue : qui est prévenu, qui agit",
    # --- la diffusion
    "release.size": "{people:personne/personnes}, {recordings:enregistrement/enregistrements}",
    "release.minutes": "{size}, {minutes:minute} de parole",
    "release.hours": "{size}, {hours} heures de parole",
    "release.version": "{name}, version {version}",
    "release.people": "{people:personne/personnes}",
    "release.what": "Ce qui serait diffusé",
    "release.amount": "Personnes et enregistrements",
    "release.assessed": "Évaluation",
    "release.anonymizer": "Anonymiseur et version",
    "release.recipients": "Destinataires",
    "stated.simplified": "simplifiée",
    "stated.contextual": "contextuelle",
    "stated.negligible": "négligeable",
    "stated.limited": "limitée",
    "stated.significant": "importante",
    "stated.maximum": "maximale",
    # --- destinataires
    "recipients.title": "Destinataires",
    "recipients.declared": "Destinataires déclarés par le responsable du traitement. Le caractère identifiable d'une personne "
    "dépend de qui détient les données (CJUE, 4 septembre 2025, C-413/23 P, Contrôleur européen de la protection des données c/ "
    "Conseil de résolution unique). Chaque chiffre indique combien de tentatives sur 100 réussissent à l'attaquant le plus fort "
    "que le destinataire pourrait être, avec son intervalle à 95 %.",
    "recipients.assumed": "Aucun destinataire n'a été déclaré. Or le caractère identifiable d'une personne dépend de qui détient "
    "les données (CJUE, 4 septembre 2025, C-413/23 P, Contrôleur européen de la protection des données c/ Conseil de résolution "
    "unique). Voici donc les rôles cités par les recommandations sur l'anonymisation, chacun avec ce dont on peut supposer qu'il "
    "dispose ; veuillez les remplacer par les destinataires réels. Chaque chiffre indique combien de tentatives sur 100 "
    "réussissent à l'attaquant le plus fort que le destinataire pourrait être, avec son intervalle à 95 %.",
    "recipients.route_": "Approche (lignes directrices 02/2026 du Comité européen de la protection des données, projet du 7 "
    "juillet 2026 soumis à consultation publique) : non indiquée. La première ligne correspond à l'approche simplifiée, qui "
    "suppose l'attaquant le plus fort ; les lignes suivantes correspondent à l'approche contextuelle.",
    "recipients.route_simplified": "Approche simplifiée (lignes directrices 02/2026 du Comité européen de la protection des "
    "données, projet du 7 juillet 2026 soumis à consultation publique) : on suppose l'attaquant le plus fort. Conséquences : la "
    "première ligne vaut pour tous les destinataires, et ce dont un destinataire ne dispose pas n'est pas un argument ; les "
    "autres lignes sont indicatives. Si un critère n'est pas rempli, le projet demande une analyse plus poussée. Les attaquants "
    "qui n'ont pas été simulés sont une lacune de cette approche.",
    "recipients.route_contextual": "Approche contextuelle (lignes directrices 02/2026 du Comité européen de la protection des "
    "données, projet du 7 juillet 2026 soumis à consultation publique) : chaque destinataire est apprécié selon ce dont il peut "
    "disposer. Conséquences : affirmer qu'un destinataire ne dispose pas d'un moyen doit être documenté et réexaminé ; les "
    "contrats complètent cette affirmation sans la remplacer ; les chiffres ne valent que pour ces destinataires ; un "
    "destinataire qui obtient davantage ou transmet les enregistrements doit être réévalué. La première ligne montre l'attaquant "
    "le plus fort, à titre de comparaison.",
    "recipients.recipient": "destinataire",
    "recipients.has": "ce dont il dispose, et attaquants simulés pour lui",
    "recipients.means": "{has}. Attaquants : {attackers}.",
    "recipients.original_speech": "enregistrements d'origine",
    "recipients.anonymizer": "l'anonymiseur",
    "recipients.labels": "identité des locuteurs de certains enregistrements diffusés",
    "recipients.pseudonyms": "pseudonymes réunissant les enregistrements d'une personne",
    "recipients.candidates": "{count} candidats",
    "recipients.nothing": "rien d'autre que la diffusion",
    "recipients.linking": "{level} : {figure} sur 100 ; hasard {guessing} ({attacker} ; {candidates} candidats ; "
    "{length:enregistrement/enregistrements} à la fois).",
    "recipients.linking_model": "{level} : {figure} sur 100 selon un modèle ; hasard {guessing} ({attacker} ; {candidates} "
    "candidats ; {length:enregistrement/enregistrements} à la fois).",
    "recipients.linking_unknown": "inconnu pour {candidates} candidats : trop peu de personnes ont été évaluées.",
    "recipients.person": "Personne la plus souvent retrouvée : {figure} sur 100, parmi {among}.",
    "recipients.person_by_chance": "Personne la plus souvent retrouvée : {figure} sur 100, parmi {among}, ce que le hasard explique.",
    "recipients.singling_out": "{level} : {figure} sur 100 de plus qu'une règle établie sans connaître personne ({attacker})",
    "recipients.inference": "{level} : {attribute}, {figure} sur 100 ; hasard {guessing}",
    "recipients.none": "non testé pour ce destinataire",
    "recipients.no_attacker": "aucun",
    "recipients.not_run": "Non simulés, bien que ces destinataires en aient les moyens : {attackers} ({names}).",
    "recipients.no_inference": "L'inférence a été testée avec un attaquant qui apprend sur la parole anonymisée d'autres "
    "personnes. Les destinataires qui n'ont ni l'anonymiseur ni l'identité de locuteurs diffusés n'en disposent pas ; pour eux, "
    "l'inférence n'a pas été testée.",
    "recipients.nobody": "{name} : tous les attaquants simulés demandent plus que ce dont ce destinataire dispose. Rien n'a été "
    "testé pour lui, ce qui ne veut pas dire que personne ne puisse être reconnu.",
    "recipients.more_candidates": "{name} : compte {candidates} candidats, mais la plus longue liste testée en a {most}. Au-delà, "
    "le chiffre est l'estimation d'un modèle.",
    "recipients.fewer_candidates": "{name} : compte {candidates} candidats, mais la plus courte liste testée en a {least}. Avec "
    "moins de candidats, il est plus facile de reconnaître quelqu'un ; le chiffre est interpolé.",
    "recipients.pseudonyms_not_run": "{name} : voit quels enregistrements proviennent d'une même personne, mais aucun attaquant "
    "simulé n'a réuni plusieurs enregistrements. Évaluez avec --lengths 1,3 ou plus, ou avec l'attaquant adaptive-pseudonyms.",
    "recipients.joins_anyway": "{name} : est déclaré sans pseudonymes, mais des enregistrements diffusés d'une même personne ont "
    "été reliés entre eux. Il est traité comme un destinataire qui peut les réunir.",
    "recipients.released_run": "{name} : dispose de l'anonymiseur, mais les attaquants ont utilisé les enregistrements diffusés "
    "au lieu d'exécuter l'anonymiseur à nouveau. Si celui-ci tire les voix au hasard, ce n'est pas ce que le destinataire "
    "obtiendrait.",
    "recipients.anonymizer_not_run": "{name} : sait ce que l'anonymiseur fait de la parole, mais aucun attaquant simulé ne s'en "
    "sert.",
    "recipients.attackers_of_nobody": "Attaquants simulés qu'aucun destinataire déclaré ne pourrait être : {attackers}. Veuillez "
    "indiquer pourquoi personne ne peut obtenir ce qu'il leur faut.",
    "recipients.other_list": "La première page suppose {candidates} candidats, ce qui n'est le cas d'aucun destinataire déclaré.",
    "cast.controller": "Responsable du traitement",
    "cast.contractual_recipient": "Destinataire sous contrat",
    "cast.motivated_intruder": "Intrus motivé",
    "cast.insider": "Personne interne, par exemple un employé malveillant",
    "cast.public": "Le public",
    "cast.anybody": "N'importe qui : l'attaquant le plus fort",
    # --- inférence avec contrôle
    "inference.title": "Inférence avec contrôle",
    "inference.note": "Ce que les enregistrements d'une personne permettent de déduire au-delà de ce qui se déduit sans eux. Le "
    "contrôle est la même déduction à partir des enregistrements d'une autre personne ; le risque est la part de ce que le "
    "contrôle laisse ouvert et que les enregistrements de la personne permettent de trancher (le risque au sens d'anonymeter). "
    "Les attributs qui n'ont pas pu être déduits figurent sous « Risque résiduel ».",
    "inference.attribute": "attribut",
    "inference.with": "réponses justes avec les enregistrements, sur 100",
    "inference.without": "réponses justes sans eux (contrôle, et 90 % de ses tirages)",
    "inference.beyond": "risque au-delà du contrôle, en %",
    "inference.original": "réponses justes à partir de la parole d'origine",
    "inference.combined": "Tous les attributs propres à une personne, réunis tels qu'ils sont déduits : "
    "{combinations:combinaison/combinaisons} pour {people:personne/personnes} ; {alone:personne est seule/personnes sont seules} à "
    "présenter la sienne, et pour {alone_and_right} d'entre elles tous les attributs déduits sont justes.",
    "inference.sharing": "La combinaison la plus rare réunit {smallest:personne/personnes} ; la moitié des personnes partagent la leur "
    "à {typical} au moins, elles comprises.",
    "inference.combined_one": "Moins de deux attributs propres à une personne ont été déduits ; leurs combinaisons n'ont donc pas "
    "été comptées.",
    # --- groupes et individus
    "individuals.title": "Groupes et individus",
    "individuals.note": "Une moyenne peut cacher un groupe ou une personne. Les lignes directrices 02/2026 (projet) demandent de "
    "considérer tous les individus, et une attaque réussie contre un seul d'entre eux compte. Ensemble et groupes : "
    "{length:enregistrement/enregistrements} à la fois. La personne la plus souvent retrouvée a été cherchée parmi "
    "{people:personne/personnes} et par {attackers:attaquant/attaquants} ; l'intervalle en tient compte.",
    "individuals.who": "qui",
    "individuals.among": "candidats",
    "individuals.linked": "enregistrements reliés, sur 100",
    "individuals.guessing": "hasard",
    "individuals.attacker": "attaquant",
    "individuals.everybody": "Ensemble des personnes",
    "individuals.person": "Personne la plus souvent retrouvée",
    "individuals.by_chance": "Personne la plus souvent retrouvée, ce que le hasard explique parmi tant de personnes",
    # --- vraisemblance et gravité
    "likelihood.note": "La vraisemblance est celle de l'attaquant le plus fort parmi ceux qui ont été simulés, avec son "
    "intervalle à 95 %.",
    "likelihood.criterion": "critère",
    "likelihood.attack": "attaque",
    "likelihood.likelihood": "vraisemblance",
    "likelihood.severity": "gravité pour les personnes concernées",
    "attackers.unknown": "l'attaquant {name}",
    "attackers.attacker": "attaquant",
    "attackers.effort": "moyens nécessaires",
    "attackers.note": "Part des enregistrements reliés à la bonne personne, parmi {candidates} candidats et avec "
    "{length:enregistrement/enregistrements} à la fois.",
    "attackers.cost": "coût constaté ici",
    "attackers.took_attack": "{seconds} s de processeur pour l'attaque et sa mesure",
    "attackers.took_extraction": "{seconds} s pour extraire les voix",
    "attackers.took_anonymizer": "{seconds} s pour exécuter l'anonymiseur",
    "attackers.unknown_attack": "temps de processeur de l'attaque non relevé",
    "attackers.unknown_extraction": "extraction des voix non chronométrée ici",
    "attackers.unknown_anonymizer": "exécution de l'anonymiseur non chronométrée ici",
    "attackers.machine": "{system}, {cores:cœur/cœurs}",
    "attackers.unknown_machine": "non relevée",
    "attackers.used": "{enrollment} enregistrements connus et {trials} diffusés",
    "attackers.cost_note": "Les moyens raisonnablement susceptibles d'être utilisés s'apprécient selon le coût, le temps et les "
    "technologies disponibles (RGPD, considérant 26). Le temps de processeur a été mesuré ici ; pour l'extraction et "
    "l'anonymiseur, c'est le débit mesuré, appliqué aux enregistrements dont l'attaque a besoin ; il manque lorsque les vecteurs "
    "ou la parole anonymisée ont été fournis. Machine : {machine}. L'entraînement d'un système public de reconnaissance ou de "
    "l'anonymiseur lui-même n'est pas compté. Les attaques deviennent moins coûteuses avec le temps.",
    "attackers.margin": "Marge pour de meilleurs attaquants : le plus fort des attaquants publiés ({paper}) relie {found} "
    "enregistrements sur 100, le plus fort simulé ici ({best}) en relie {more}. Ce que de meilleures méthodes ont apporté "
    "jusqu'ici, de futures méthodes peuvent l'apporter encore. Pour voir ce que les attaquants ont gagné depuis une évaluation "
    "antérieure, comparez les deux évaluations.",
    "attackers.no_margin": "Marge pour de meilleurs attaquants : aucun attaquant simulé ici ne relie plus que le plus fort des "
    "attaquants publiés ({paper}, {found} enregistrements sur 100). Cela ne borne pas ce que trouveront de futurs attaquants. "
    "Pour voir ce que les attaquants ont gagné depuis une évaluation antérieure, comparez les deux évaluations.",
    "attackers.chosen": "Pour l'ensemble des personnes, ce dossier retient {found} sur 100 : le chiffre qui compte est choisi sur une partie des "
    "personnes et évalué sur les autres, car le plus élevé de plusieurs chiffres est trop élevé en moyenne.",
    "attackers.severity": "gravité, si cet attaquant est réaliste",
    "attackers.not_measured": "non mesuré",
    "limit.none": "Aucune limite n'a été choisie pour cette évaluation. Les recommandations d'un régulateur peuvent en indiquer "
    "une : celles de l'Agence européenne des médicaments sur la politique 0070 (EMA/90915/2016) et de Santé Canada sur la "
    "diffusion publique de renseignements cliniques retiennent une probabilité de 9 % pour la diffusion publique de rapports "
    "cliniques. Il faut justifier que ce chiffre convient à des enregistrements de voix.",
    "residual.note": "Risque qui demeure pour les personnes concernées, du fait des attaquants simulés et de ce qui n'a pas été "
    "testé. La gravité et la vraisemblance sont estimées par le responsable du traitement, non par la mesure.",
    "residual.scale": "{scale} (échelle de la méthode PIA de la CNIL)",
    "residual.not_tested": "Non testé : {reason}",
    "reliance.not_checked": "Non vérifié : {check}. {reason}",
    "mitigations.note": "Déduites des résultats par des règles fixes ; veuillez indiquer lesquelles sont mises en œuvre.",
    "mitigations.measure": "mesure",
    "mitigations.why": "raison",
    "mitigations.taken": "mise en œuvre ? échéance, responsable",
    # --- méthode
    "method.text": "{searched} parmi {enrolled} personnes connues ; leurs enregistrements ont été répartis entre référence et "
    "essais ({split}). {training}Un intervalle à 95 % montre de combien le chiffre varierait avec d'autres personnes. La partie "
    "technique du rapport définit chaque mesure ; results.json contient tous les nombres et ce qu'il faut pour reproduire "
    "l'évaluation.",
    "method.person": "1 personne a été recherchée",
    "method.people": "{count} personnes ont été recherchées",
    "method.cross-validation by speaker": "Les attaquants qui apprennent ont été entraînés sur d'autres personnes que celles qu'ils "
    "cherchaient. ",
    "method.separate corpus": "Les attaquants qui apprennent ont été entraînés sur d'autres enregistrements. ",
    # --- renvois, dans le modèle pour les autorités
    "standards.title": "Renvois aux normes",
    "standards.note": "Où ce dossier répond aux articles et aux termes des normes ISO/IEC 27559:2022, ISO/IEC 24745:2022 et "
    "ISO/IEC 30136:2018. C'est une aide à la lecture, non une déclaration de conformité.",
    "standards.clause": "article ou terme",
    "standards.chapters": "chapitres de ce dossier",
    "standards.27559_6": "ISO/IEC 27559:2022, article 6 : contexte (menaces, motifs, transparence, préjudice)",
    "standards.27559_7": "ISO/IEC 27559:2022, article 7 : données (personnes, attributs, modélisation des attaques, population ou "
    "échantillon)",
    "standards.27559_8": "ISO/IEC 27559:2022, article 8 : identifiabilité (quantifier, éprouver par l'attaque, atténuer, réévaluer)",
    "standards.27559_9": "ISO/IEC 27559:2022, article 9 : gouvernance (rôles, surveillance, incidents)",
    "standards.24745_unlinkability": "ISO/IEC 24745:2022, unlinkability (impossibilité d'établir un lien) : relier des "
    "enregistrements à une personne, et entre eux",
    "standards.24745_irreversibility": "ISO/IEC 24745:2022, irréversibilité : inverser l'anonymisation",
    "standards.30136_success": "ISO/IEC 30136:2018, succès des attaques : Linkability, par attaquant et par destinataire",
    "standards.30136_leakage": "ISO/IEC 30136:2018, fuite d'information : information divulguée",
    "intruder.title": "Test de l'intrus motivé",
    "intruder.note": "Liste de contrôle d'après les recommandations de l'Information Commissioner's Office (Royaume-Uni) sur "
    "l'anonymisation (28 mars 2025). L'intrus est raisonnablement compétent, n'a pas de connaissance préalable et se sert de ce "
    "qui est public. Ce que montre cette évaluation est déjà rempli.",
    "intruder.item": "question",
    "intruder.run": "ce que montre cette évaluation",
    "intruder.answer": "réponse, par qui, quand",
    "intruder.means": "Que peut-on supposer que l'intrus possède ?",
    "intruder.recordings": "Quels enregistrements des personnes sont publics (exposés, vidéos, messages vocaux) ?",
    "intruder.anonymizer": "L'anonymiseur est-il public, ou peut-on se le procurer ?",
    "intruder.words": "Ce qui est dit, ou les personnes mentionnées, permettrait-il à des proches de reconnaître quelqu'un ?",
    "intruder.attempts": "Quelles tentatives ont été faites, et avec quels résultats ?",
    "intruder.independent": "D'autres tentatives ont-elles été faites par quelqu'un qui n'a pas préparé la diffusion ?",
    "intruder.repeat": "Quand le test est-il répété ?",
    # --- décision à signer
    "sign.note": "Les mesures plaideraient pour une option ou contre une autre ; elles ne décident pas. Rien n'est coché "
    "d'avance. C'est le seul endroit à signer : le reste du rapport en est la preuve.",
    "sign.entry": "rubrique",
    "sign.remarks": "remarques, nom, date, signature",
    "sign.question": "Question",
    "sign.ask": "Ces enregistrements peuvent-ils être remis aux destinataires désignés dans l'annexe, et à quel titre ?",
    "sign.option_1": "Partager ; considérés comme anonymes pour ce destinataire, pour les raisons indiquées ici",
    "sign.option_2": "Partager comme données à caractère personnel, sous contrat",
    "sign.option_3": "Ne pas partager",
    "sign.option_4": "Tester davantage avant de décider",
    "sign.no_limit": "Aucune limite n'a été choisie pour cette évaluation.",
    "sign.assessed_by": "Évalué par",
    "sign.version": "Version de ce document",
    "sign.digest": "SHA-256 de results.json",
    "fill_in": "Cliquez ici pour remplir.",
    # --- fichier pour l'outil PIA
    "pia.processing": "Diffusion d'enregistrements de parole anonymisés",
    "pia.data": "Enregistrements de parole anonymisés : ce qui reste des voix, et ce qui est dit.",
    "pia.measure": "Anonymisation de la voix",
    "pia.likelihood": "Il s'agit de mesures. Veuillez estimer la gravité et la vraisemblance sur l'échelle de votre organisme.",
}  # fmt: skip

# --- vérifications et attaquants

CHECKS = {
    "strong on original speech": "Efficace sur la parole d'origine",
    "everybody is recognized on original speech": "Chacun est reconnu sur la parole d'origine",
    "adaptation helps": "L'adaptation aide",
    "anonymized differs from original": "L'anonymisé diffère de l'original",
    "recordings have their own ids": "Les enregistrements portent leur propre identifiant",
    "no copies in enrollment and trials": "Pas de copies entre référence et essais",
    "enough speakers": "Assez de locuteurs",
    "training speakers are others": "Les locuteurs d'entraînement sont d'autres personnes",
    "enrollment and trials of different sessions": "Référence et essais de sessions différentes",
    "scores without ties": "Scores sans ex æquo",
    "scores are not inverted": "Les scores ne sont pas inversés",
    "attackers ran the anonymizer": "Les attaquants ont exécuté l'anonymiseur",
    "the release agrees with the attackers": "La diffusion concorde avec les attaquants",
    "vector lengths tell nothing": "La longueur des vecteurs ne dit rien",
    "no finite set left untried": "Aucun ensemble fini de tirages n'est laissé sans essai",
    "errors are not due to target voices": "Les erreurs ne viennent pas des voix cibles",
    "anonymized recordings are speech": "Les enregistrements anonymisés sont de la parole",
}

_KNOWN = "des enregistrements des personnes recherchées"
_YOURS = f"votre anonymiseur, {_KNOWN}"
_OTHERS = "des enregistrements de quelques centaines d'autres personnes"
_RECOGNIZER, _TRAINS = "utilise un système public de reconnaissance du locuteur", "entraîne des modèles"
ATTACKERS = {
    "original": PlainWords("quiconque, sans anonymisation", _KNOWN, _RECOGNIZER, "une heure"),
    "ignorant": PlainWords("quelqu'un qui ignore que la parole a été anonymisée", _KNOWN, _RECOGNIZER, "une heure"),
    "lazy-informed": PlainWords("quelqu'un qui a votre anonymiseur", _YOURS, _RECOGNIZER, "un jour"),
    "semi-informed": PlainWords(
        "quelqu'un qui a un anonymiseur semblable et entraîne un système de reconnaissance sur ce qu'il produit",
        f"un anonymiseur semblable, {_KNOWN}, {_OTHERS}", "entraîne un modèle", "des jours",
    ),
    "informed": PlainWords(
        "quelqu'un qui a votre anonymiseur et entraîne un système de reconnaissance sur ce qu'il produit",
        f"{_YOURS}, {_OTHERS}", "entraîne un modèle", "des jours",
    ),
    "procrustes": PlainWords(
        "quelqu'un qui a votre anonymiseur et tente de l'inverser", _YOURS, "un peu d'algèbre linéaire", "un jour"
    ),
    "wasserstein-procrustes": PlainWords(
        "quelqu'un qui tente d'inverser votre anonymiseur sans l'avoir",
        "des enregistrements d'origine et anonymisés, non appariés", "une méthode de recherche", "des jours",
    ),
    "adaptive": PlainWords(
        "quelqu'un qui a votre anonymiseur et garde la meilleure de nombreuses méthodes", _YOURS, _TRAINS, "des jours"
    ),
    "adaptive-unlabeled": PlainWords(
        "le même, qui regarde la diffusion entière à la fois", f"{_YOURS}, la diffusion entière", _TRAINS, "des jours"
    ),
    "adaptive-pseudonyms": PlainWords(
        "le même, qui sait quels enregistrements diffusés vont ensemble", f"{_YOURS}, la diffusion entière", _TRAINS, "des jours"
    ),
    "fused": PlainWords(
        "le même, avec plusieurs systèmes de reconnaissance à la fois, de la voix ou des mots et du rythme",
        _YOURS, _TRAINS, "des jours",
    ),
}  # fmt: skip
