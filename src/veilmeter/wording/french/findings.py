"""The findings of the annex in French: each has one sentence, for the annex alone. The others stay English."""

from __future__ import annotations

import math
from typing import Any, Literal

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.english.verdict import share_of
from veilmeter.wording.french.annex import ATTACKERS, CHECKS, TEXTS
from veilmeter.wording.numbers import (
    by_language_code,
    capitalize,
    chance,
    count,
    expected,
    hundred_cells,
    listing,
    of_hundred,
    percent,
    roughly,
    span,
    whole,
)


def _who(name: str) -> str:
    return ATTACKERS[name].who if name in ATTACKERS else TEXTS["attackers.unknown"].format(name=name)


# --- phrases

WORDS = Catalog()
_SAY = {
    "nothing_attacked": "Aucune attaque n'a été mesurée.",
    "little_voice_left": "Peut-être que rien n'a été reconnu parce qu'il ne reste presque plus de voix : écoutez le résultat avant de "
    "vous y fier, ou mesurez si la parole est encore utilisable.",
    "only_attribute_kept": "D'après ces attaquants, seul l'attribut {attribute} est conservé : parmi les personnes qui ont la même valeur, personne n'est relié significativement plus "
    "souvent que par hasard.",
    "one_voice_per_speaker": "Chaque locuteur semble garder la même nouvelle voix dans tous ses enregistrements : qui reconnaît une "
    "personne dans l'un d'eux trouve tous les autres. Un nom est remplacé par un autre ; le lien entre les enregistrements demeure.",
    "nobody_tried": "Personne n'a d'essai, si bien qu'aucun résultat par personne n'est possible.",
    "lawyer_recipients": "Qui pourrait réellement obtenir la parole, et que sait-il d'autre (RGPD, considérant 26 : moyens "
    "raisonnablement susceptibles d'être utilisés) ? Les attaquants sont définis ici par ce qu'ils ont ; savoir lesquels existent est une "
    "question de fait.",
    "lawyer_contents": "Les mots prononcés, les bruits de fond ou les métadonnées identifient-ils des personnes ? Personne n'y a cherché "
    "de noms ni de faits.",
    "lawyer_other_data": "D'autres données, disponibles ou qui le deviendront, facilitent-elles la reconnaissance ?",
    "lawyer_acceptance": "Quel risque résiduel est acceptable pour cette finalité, ces destinataires et ces garanties, et qui en décide ?",
    # --- répartition
    "split_of_scores": "les essais des fichiers de scores",
    "split_by_challenge": "les listes des données VoicePrivacy",
    # --- vérifications
    "original_not_measured": "La reconnaissance des personnes sur la parole d'origine n'a pas été mesurée.",
    "recordings_not_compared": "Les enregistrements d'origine et anonymisés n'ont pas pu être comparés entre eux.",
    "ids_not_compared": "On n'a pas cherché si des enregistrements portent l'identifiant d'autres, ou cela ne change rien.",
    "copies_not_sought": "On n'a pas cherché de copies d'enregistrements entre référence et essais.",
    "linking_without_interval": "Aucun taux de corrélation avec intervalle n'a été mesuré.",
    "no_training_speech": "Aucune parole d'entraînement n'a été fournie.",
    "sessions_unknown": "Les sessions des enregistrements ne sont pas connues.",
    "no_scores": "Aucun score n'a été mesuré.",
    "release_not_linked": "Trop peu de personnes ont plusieurs enregistrements diffusés pour les relier entre eux.",
    "draws_not_compared": "On n'a pas cherché si les tirages de l'anonymiseur se répètent, ou cela ne change rien.",
    "lengths_not_compared": "Tous les vecteurs ont la même longueur, ou trop peu de personnes peuvent être comparées.",
    "no_target_voices": "Les personnes ne partagent pas de voix cibles, ou aucune n'est tirée : les erreurs ne peuvent pas leur être "
    "attribuées.",
    "speech_not_measured": "On n'a pas mesuré si les enregistrements anonymisés sont encore de la parole.",
    "speech_not_yet_measured": "On n'a pas encore mesuré si les enregistrements anonymisés sont de la parole.",
    "originals_without_words": "La reconnaissance de la parole n'a trouvé aucun mot dans {wordless:enregistrement/enregistrements} d'origine sur {recordings} ; "
    "elle ne peut donc pas dire si les anonymisés sont de la parole.",
    "low_quality": "La qualité prédite des enregistrements anonymisés est de {quality:.1f} sur une échelle de 1 à 5 : cela ne ressemble "
    "guère à de la parole.",
    "words_understood": "La reconnaissance de la parole comprend des mots dans {understood:enregistrement anonymisé/enregistrements anonymisés} sur {recordings}.",
    "not_protected": "Dans un enregistrement qui n'a pas été modifié, personne n'est protégé.",
    "distrusted": "D'après ses propres vérifications, l'évaluation n'est pas fiable.",
    # --- ce qui n'a pas été testé
    "not_asked_for": "non demandé",
    "family_not_asked_for": "{family} n'a pas été demandé",
    "no_scores_given": "aucun score n'a été fourni",
    "speech_needed": "corrélation, individualisation, similarité, inversion, inférence et utilité : il faut de la parole ou des vecteurs",
    "disclosure_removed_unknown": "la part de divulgation supprimée : il faut des attaquants qui n'ont pas été simulés ({attackers})",
    "runs_without_enrollment": "les passages de l'attaquant n'ont aucun des enregistrements de référence",
    "runs_of_few_people": "les passages de l'attaquant ont des enregistrements de moins de deux personnes connues",
    "backend_untrained": "le classifieur {backend} a besoin de parole d'entraînement",
    "dimensions_differ": "les vecteurs d'origine et anonymisés n'ont pas la même dimension",
    "too_few_for_rotation": "{recordings:enregistrement/enregistrements}, c'est trop peu pour apprendre une rotation",
    "too_few_to_train": "aucune parole d'entraînement n'a été fournie, et {speakers:locuteur/locuteurs}, c'est trop peu pour entraîner sur les "
    "uns et tester sur les autres",
    "no_similar_speech": "aucune parole anonymisée par un système semblable n'a été fournie",
    "one_candidate": "il n'y a qu'un candidat",
    "copies_of_other_dimension": "ses propres copies ont {copies} nombres par vecteur, les vecteurs diffusés {released}",
    "vectors_of_two_extractors": "sans passage de l'anonymiseur, vecteurs d'origine et diffusés doivent venir d'un même extracteur",
    "one_extractor": "il n'y a qu'un extracteur",
    "no_release_pseudonyms": "rien ne dit quels enregistrements diffusés partagent un pseudonyme",
    "not_possible": "pas possible avec ces données (la raison est dans results.json)",
    "attribute_not_inferred": "l'attribut {attribute} n'a pas pu être déduit (la raison est dans results.json)",
    "group_not_measured": "Rien n'a été mesuré pour le groupe {group} (la raison est dans results.json).",
    "measure_not_possible": "{measure} : pas possible avec ces données (la raison est dans results.json)",
    "reasons_left_out": "{count:,} de plus figurent dans results.json.",
    "future_not_tested": "D'autres attaquants, et la reconnaissance du locuteur à venir.",
    # --- fiabilité
    "self_checks_failed": "Ne vous fiez pas encore à ce résultat : {failed:vérification/vérifications} sur {made} {failed:~a/ont} échoué.",
    "untrustworthy": "Ne vous fiez pas encore à ce résultat : ses vérifications ont échoué.",
    "alarm_is_certain": "L'alerte est certaine, bien que {failed:vérification/vérifications} sur {made} {failed:~ait/aient} échoué.",
    # --- limite
    "limit_without_linking": "La limite de {percent:.3g} sur 100 a été donnée, mais la corrélation n'a pas été mesurée.",
    # --- ce qu'il faut faire
    "advice_stronger_anonymizer": "Utiliser un anonymiseur plus fort, ou des réglages plus forts.",
    "unaware_attacker_finds": "Même quelqu'un qui ignore que la parole a été anonymisée relie {estimate:%} enregistrements sur 100.",
    "advice_new_voices": "Tirer une nouvelle voix pour chaque enregistrement et non une par personne, et garder les tirages secrets.",
    "anonymizer_helps_attacker": "Quelqu'un qui a votre anonymiseur relie {having:%} enregistrements sur 100, quelqu'un qui ne l'a pas "
    "{lacking:%}.",
    "advice_fewer_recordings": "Diffuser au plus {length:enregistrement/enregistrements} par personne.",
    "fewer_recordings_help": "Les enregistrements reliés passent de {before:%} à {after:%} sur 100.",
    "advice_vary_parameters": "Utiliser un anonymiseur dont l'effet ne s'apprend pas par des exemples, par exemple en tirant de nouveaux "
    "paramètres pour chaque enregistrement.",
    "recordings_inverted": "Pour {estimate:%} enregistrements sur 100, inverser l'anonymisation révèle le locuteur.",
    "advice_treat_people": "Traiter à part {number:personne reliée/personnes reliées} plus d'une fois sur deux, ou ne pas diffuser "
    "{number:~ses/leurs} enregistrements.",
    "people_are_listed": "La liste de la partie technique montre qui c'est.",
    "advice_less_similar_voices": "Utiliser de nouvelles voix moins semblables à celles d'origine.",
    "advice_decide_attribute": "Décider si l'attribut {attribute} peut être connu ; sinon, choisir les nouvelles voix indépendamment de lui.",
    "attribute_inferred": "Il est déduit correctement pour {estimate:%} enregistrements sur 100.",
    "advice_more_people": "Évaluer plus de personnes.",
    "advice_assess_speech": "Évaluer des enregistrements ou des vecteurs : des scores ne disent pas qui un attaquant nomme.",
    "interval_is_wide": "Le chiffre véritable se situe probablement entre {low:.0f} et {high:.0f} sur 100 ; avec quatre fois plus de personnes, cette "
    "plage serait moitié moins large.",
    "advice_listen": "Écouter le résultat avant de s'y fier : il ne reste peut-être presque plus de voix.",
    "advice_assess_again": "Réévaluer quand l'anonymiseur, ses réglages, les enregistrements ou les destinataires changent.",
}  # fmt: skip
for _code, _template in _SAY.items():
    WORDS.say(_code, _template)

_VERDICTS = {
    "high": "Des personnes peuvent être reconnues.",
    "raised": "La protection est partielle.",
    "unknown": "Trop peu a été mesuré pour dire si des personnes peuvent être reconnues.",
    "low": "Aucun des attaquants simulés n'a fait significativement mieux que le hasard.",
}
WORDS.words("verdict")(lambda level: _VERDICTS[level])
_RISKS = {"overestimated": "plus élevé", "underestimated": "plus bas", "either": "plus bas ou plus élevé"}
WORDS.words("privacy_misjudged")(lambda misleads: f"Le risque réel peut être {_RISKS[misleads]} que ces chiffres.")
WORDS.words("split_by_lists")(lambda found: "listes trouvées avec les données" if found else "listes")


@WORDS.words("split_by_session")
def _split_by_session(by_session: int, in_halves: int) -> str:
    if by_session and in_halves:
        return f"par session ({_speakers(by_session)}), moitiés au hasard ({_speakers(in_halves)} avec une session)"
    return "par session" if by_session else "moitiés au hasard"


def _speakers(number: int) -> str:
    return count(number, "locuteur")


def _people(number: int) -> str:
    return count(number, "personne")


def _within(group: tuple[Reference, ...]) -> str:
    return f" ({shown(group)})" if group else ""


@WORDS.words("release_found")
def _release_found(attacker: str, candidates: int, about: str, chosen: bool | None = None, **counts: Any) -> str:
    who = "l'attaquant le plus fort" if chosen else _who(attacker)
    return f"{_release_count(**counts).removesuffix('.')} par {who}, avec une liste de {count(candidates, 'candidat')}."


@WORDS.words("linked_without")
def _linking_without(number: int, linked: Estimate, before: Estimate, attacker: str, **further: Any) -> str:
    them = "elle" if number == 1 else "elles"
    return (
        f"Sans {them}, {_who(attacker)} relierait {of_hundred(linked)} enregistrements sur 100 des autres personnes ; "
        f"avec {them}, {hundred_cells(before)[0]}."
    )


@WORDS.words("release_count")
def _release_count(
    size: int, listed: int, found: float, low: float, high: float, basis: str, estimate: Estimate | None = None
) -> str:
    if basis == "unknown":
        return f"On ne sait pas combien des {_people(listed)} recherchées seraient retrouvées."
    model = "Selon un modèle : " if basis in ("model", "beyond") else ""
    if listed == 1:
        return f"{model}La seule personne recherchée serait retrouvée dans environ {span(100 * found, (100 * low, 100 * high))} cas sur 100."
    where = f"{model}dans une diffusion de {_people(size)}, " if listed != size else model
    found_people = f"environ {span(found, (low, high))} des {_people(listed)} recherchées seraient retrouvées."
    return capitalize(where + found_people)


@WORDS.words("nobody_ranked")
def _nobody_ranked(scores_only: bool, tried: int | None = None) -> str:
    return "Il n'y a pas de résultat par personne : " + (
        "des scores ne disent pas qui un attaquant nomme." if scores_only else "la corrélation n'a pas été mesurée."
    )


_AGREE = {
    "same": "en grande partie les mêmes personnes",
    "partly": "en partie les mêmes personnes",
    "different": "pour la plupart des personnes différentes",
}


@WORDS.words("people_linked")
def _people_linked(
    listed: int, linked: int, total: int, speakers: int, length: int, explained: bool, recognized: bool = False,
    expected_by_chance: float | None = None, agreement: str | None = None,
) -> str:  # fmt: skip
    if linked:
        shown_people = listed or linked
        verb, them = ("est relié", "le") if shown_people == 1 else ("sont reliés", "les")
        said = f"{_speakers(shown_people)} sur {whole(total)} {verb} plus d'une fois sur deux par l'attaquant qui {them} retrouve le mieux, parmi "
        said += f"{_people(speakers)} et avec {count(length, 'enregistrement')}"
        if not listed and not recognized:
            said += ", ce que le hasard explique" if explained else ", ce qu'on ne peut distinguer du hasard"
        if expected_by_chance is not None:
            said += f" ; le hasard seul en donnerait environ {expected(expected_by_chance)}"
        said += (
            ". Pour aucun d'eux le hasard n'est exclu, si bien que personne n'est dit non protégé."
            if not listed
            else "."
        )
    else:
        said = f"Sur {_speakers(total)}, aucun n'est relié plus d'une fois sur deux par un des attaquants simulés."
    return said if agreement is None else f"{said} Les attaquants retrouvent {_AGREE[agreement]}."


@WORDS.words("worst_person")
def _worst_person(
    estimate: Estimate, attacker: str, total: int, attackers: int, explained: bool, recognized: bool | None = None
) -> str:
    trials = int(estimate.n.get("conversations", 0))
    linked = round(estimate.value / 100 * trials) if math.isfinite(estimate.value) else 0
    said = f"La personne la plus souvent retrouvée l'est dans {whole(linked)} essais sur {whole(trials)}, par l'attaquant {attacker}."
    looked_at = f"{_people(total)} et {count(attackers, 'attaquant')}"
    if explained and recognized:
        return f"{said} Pour {looked_at}, le hasard peut l'expliquer d'une seule personne, mais non de toutes ensemble."
    if explained or estimate.interval is None:
        return (
            f"{said} Le hasard {'' if explained else 'ne '}l'explique{'' if explained else ' pas'}, pour {looked_at}."
        )
    low, high = estimate.interval
    return f"{said} Pour cette personne, la proportion réelle peut être de {low:.0f} à {high:.0f} sur 100, compte tenu de {looked_at}."


@WORDS.words("linking")
def _linking(estimate: Estimate, by_chance: float, group: tuple[Reference, ...] = (), **further: Any) -> str:
    among = whole(int(estimate.at["speakers"])) if "speakers" in estimate.at else "toutes"
    return f"Sur 100 enregistrements, {of_hundred(estimate)} sont reliés à la bonne personne parmi {among}{_within(group)} ; le hasard en relie {chance(by_chance)}."


@WORDS.words("singling_out")
def _singling_out(
    estimate: Estimate, attempts: Estimate | None = None, control: float | None = None, **further: Any
) -> str:
    if attempts is None or control is None:
        return f"Des personnes sont isolées au-delà du hasard dans {of_hundred(estimate)} tentatives sur 100."
    return (
        f"Dans {of_hundred(attempts)} tentatives sur 100, une règle tirée d'une voix convient à une seule personne ; une règle faite sans "
        f"connaître personne le fait dans {span(control, None)}."
    )


@WORDS.words("disclosure")
def _disclosure(
    estimate: Estimate, whole: float, group: tuple[Reference, ...] = (), top_targets: int | None = None, bands: bool = False, **further: Any
) -> str:  # fmt: skip
    share = share_of(estimate, whole)
    noise = "" if share.null is None else f" ; des scores sans contenu en révéleraient {percent(share.null)}"
    more = " Mais les scores d'une même personne forment des bandes à part, bien plus que par hasard." if bands else ""
    if top_targets is not None:
        more = f" Mais {count(top_targets, 'comparaison')} d'une même personne dépassent toutes celles de personnes différentes, plus que par hasard."
    return (
        f"Comparer deux enregistrements{_within(group)} révèle en moyenne {of_hundred(share)} % de ce qu'on pourrait savoir sur le fait "
        f"qu'ils proviennent ou non d'une même personne{noise}.{more}"
    )


@WORDS.words("inversion")
def _inversion(estimate: Estimate, by_chance: float, group: tuple[Reference, ...] = (), **further: Any) -> str:
    found = f"trouve la bonne personne pour {of_hundred(estimate)} enregistrements sur 100{_within(group)}"
    return f"Un attaquant qui apprend à inverser l'anonymiseur {found} ; le hasard en trouve {chance(by_chance)}."


@WORDS.words("inference")
def _inference(
    estimate: Estimate, attribute: Reference, by_chance: float, original: float | None = None, others: tuple[Estimate, ...] = (), **further: Any
) -> str:  # fmt: skip
    said = f"L'attribut {shown(attribute)} est déduit correctement pour {of_hundred(estimate)} enregistrements sur 100 ; le hasard donne {chance(by_chance)}."
    said += "" if original is None else f" À partir de la parole d'origine : {span(original, None)}."
    for other in others:
        luck = "" if other.null is None else f" (hasard {span(other.null, None)})"
        name = shown(Reference("attribute", str(other.at.get("attribute", ""))))
        said += f" {capitalize(name)} : {span(other.value, None)}{luck}."
    return said


# --- vérifications

_WEAK = "son échec sur la parole anonymisée prouve donc peu. Utilisez un extracteur plus fort."
_ORIGINAL = "la parole d'origine"


@WORDS.words("original_eer")
def _original_eer(
    passed: bool,
    eer: float,
    limit: float,
    group: tuple[Reference, ...] = (),
    languages: tuple[Reference, ...] = (),
    language_eers: tuple[float, ...] = (),
) -> str:
    spoken = ", ".join(f"{code} {percent(value, 1)}" for code, value in by_language_code(languages, language_eers))
    by_language = f" ; par langue : {spoken}" if spoken else ""
    figures = f"l'EER de l'attaquant{_within(group)} est de {percent(eer, 1)} (limite {percent(limit)}{by_language})"
    return (
        f"Sur {_ORIGINAL}, {figures} : il reconnaît les personnes."
        if passed
        else f"Même sur {_ORIGINAL}, {figures} : {_WEAK}"
    )


@WORDS.words("people_unheard")
def _people_unheard(
    unheard: int, total: int, limit: float, recordings: tuple[Reference, ...] = (), **further: Any
) -> str:
    if not unheard and not recordings:
        return f"Sur {_ORIGINAL}, chacune des {_people(total)} est reconnue."
    who = [f"{_people(unheard)} sur {whole(total)}"] if unheard else []
    who += [f"les enregistrements avec {shown(recordings)}"] if recordings else []
    return f"Même sur {_ORIGINAL} ne sont pas reconnus : {listing(who)}. On ne peut rien en dire. Utilisez un extracteur qui les reconnaît."


@WORDS.words("original_linked")
def _original_linked(passed: bool, linked: float, speakers: int) -> str:
    figure = f"l'attaquant relie {span(linked, None)} enregistrements sur 100 parmi {whole(speakers)} (le seuil est à mi-chemin entre le hasard et la certitude)"
    return (
        f"Sur {_ORIGINAL}, {figure} : il reconnaît les personnes."
        if passed
        else f"Même sur {_ORIGINAL}, {figure} : {_WEAK}"
    )


@WORDS.words("adaptation_not_run")
def _adaptation_not_run(missing: str) -> str:
    return (
        "Aucun attaquant adapté n'a été simulé."
        if missing == "adapted"
        else "Aucun attaquant de comparaison (ignorant, lazy-informed) n'a été simulé."
    )


@WORDS.words("adaptation")
def _adaptation(passed: bool, adapted: str, unadapted: str, adapted_eer: float, unadapted_eer: float) -> str:
    figures = f"EER : {adapted} {percent(adapted_eer, 1)}, {unadapted} {percent(unadapted_eer, 1)}"
    if passed:
        return f"Aucun attaquant adapté n'est significativement moins bon que {unadapted} ({figures})."
    return f"L'attaquant {adapted} sait plus mais fait moins bien que {unadapted} ({figures}) : son adaptation a échoué, et une autre peut trouver plus."


@WORDS.words("recordings_unchanged")
def _recordings_unchanged(unchanged: int, compared: int, let_through: int) -> str:
    of_all = f"sur {whole(compared)} enregistrements anonymisés"
    said = (
        [f"{capitalize(of_all)}, {whole(unchanged)} sont identiques aux originaux : pas d'anonymisation."]
        if unchanged
        else []
    )
    if let_through:
        said.append(
            f"{capitalize(of_all)}, {whole(let_through)} ressemblent bien plus à l'original que les autres et sont peut-être presque inchangés."
        )
    return " ".join(said) or f"{capitalize(of_all)}, aucun n'est identique à son original."


_OWN_IDS = {
    "none": "Rien n'indique que des enregistrements portent l'identifiant de ceux d'autres personnes.",
    "exchanged": "Les enregistrements anonymisés ressemblent à ceux d'autres personnes, presque chacun à un autre, plus que le hasard ne l'explique : "
    "des identifiants sont dans le mauvais ordre, ou l'anonymiseur donne aux gens la voix les uns des autres. Vérifiez quelques identifiants.",
    "unrelated": "Les enregistrements anonymisés ne sont pas plus longs quand leurs originaux le sont : les identifiants d'un côté sont sans doute "
    "dans le mauvais ordre. Écoutez quelques paires.",
}
WORDS.words("own_ids")(lambda sign, durations=None: _OWN_IDS[sign])


@WORDS.words("copies")
def _copies(passed: bool, copies: int, trials: int, released: int = 0) -> str:
    said = f"Sur {whole(trials)} enregistrements d'essai, {whole(copies)} figurent aussi dans la référence, {whole(released)} du seul côté anonymisé"
    return said + ("." if passed else " : c'est l'enregistrement qui est reconnu, pas la voix. Retirez les copies.")


@WORDS.words("enough_speakers")
def _enough(
    passed: bool, level: str, speakers: int, estimate: Estimate, by_chance: float, needed: int | None = None, group: tuple[Reference, ...] = ()
) -> str:  # fmt: skip
    rate = f"{of_hundred(estimate)} enregistrements sur 100 sont reliés (hasard {chance(by_chance)})"
    claims = {"high": "dire le risque élevé", "raised": "dire de combien le risque est accru"}
    claim = claims.get(level, "affirmer que relier ne réussit pas mieux que le hasard")
    if passed:
        return f"{_speakers(speakers)}{_within(group)}, c'est assez pour {claim} : {rate}."
    more = "plus d'enregistrements de chaque personne" if needed is None else f"environ {_people(needed)}"
    known = (
        "assez pour montrer que des personnes sont reconnues, trop peu pour dire combien"
        if level in claims
        else f"trop peu pour {claim}"
    )
    return f"{_speakers(speakers)}{_within(group)}, c'est {known} : {rate}. Il faudrait {more}."


@WORDS.words("training_overlap")
def _training_overlap(overlap: int, speakers: int, role: str) -> str:
    if not overlap:
        return "Aucun locuteur évalué n'est dans la parole d'entraînement fournie."
    return f"Sur {_speakers(speakers)} évalués, {whole(overlap)} figurent aussi dans la parole d'entraînement : l'attaquant les connaît déjà."


@WORDS.words("same_session")
def _same_session(passed: bool, share: float) -> str:
    said = f"{percent(share)} des enregistrements d'essai partagent une session avec la référence de leur locuteur"
    return said + ("." if passed else " : une salle ou un micro peut être reconnu au lieu d'une voix.")


@WORDS.words("ties")
def _ties(passed: bool, moved: float, attacker: str) -> str:
    if passed:
        return (
            "Les scores égaux ne comptent guère."
            if moved
            else "Aucun score de la bonne personne n'égale celui d'une autre."
        )
    return f"Beaucoup de scores sont égaux, et leur ordre change les chiffres de l'attaquant {attacker} : ils sont arrondis, ou des vecteurs sont identiques."


@WORDS.words("inverted_scores")
def _inverted_scores(passed: bool, attacker: str, **further: Any) -> str:
    if passed:
        return "Aucun attaquant ne divulgue plus avec des scores de signe inverse, au-delà du hasard."
    return f"Les scores de l'attaquant {attacker} divulguent plus avec le signe inverse ; un attaquant s'en servirait."


@WORDS.words("own_runs")
def _own_runs(runs: int, shares_draws: bool, unlike: bool, not_covered: int) -> str:
    said = (
        f"Les attaquants ont exécuté eux-mêmes l'anonymiseur ({whole(runs)} fois)."
        if runs
        else "Les attaquants n'ont pas exécuté l'anonymiseur."
    )
    if unlike:
        said = "Ce qui a été fourni comme passage des attaquants ne ressemble pas à la diffusion : ce qu'ils en ont appris peut ne pas valoir pour elle."
    said += f" Leurs passages ne couvrent pas {_people(not_covered)}." if not_covered else ""
    shared = " Ils ont pris la référence dans la diffusion elle-même : si elle tire les voix au hasard, ils partagent ses tirages."
    return said + (shared if shares_draws else "")


@WORDS.words("release_linked")
def _release_linked(passed: bool, recognized: bool, own_voices: bool, share: float) -> str:
    linked = "Des enregistrements diffusés d'une même personne sont reliés entre eux"
    if recognized:
        return f"{linked}, ce dont le niveau de risque tient déjà compte."
    if passed and not own_voices:
        return "Par leur ressemblance, les enregistrements diffusés d'une même personne ne sont pas reliés entre eux plus souvent que par hasard."
    return f"{linked}, bien qu'aucun attaquant ne les relie à des originaux : qui sait qui parle dans l'un d'eux trouve les autres."


@WORDS.words("draws")
def _draws(
    effect: Literal["none", "harmless", "tried", "misleading"],
    noticed: int,
    size: int | None = None,
    tried: int = 0,
    set_size: int = 0,
) -> str:
    if effect == "none":
        return (
            "Rien n'indique que les tirages de l'anonymiseur se répètent. Avec peu de bruit, un ensemble d'environ "
            f"{roughly(noticed)} transformations au plus serait probablement remarqué ; s'il est plus grand, un "
            "attaquant qui essaie chacune peut reconnaître des personnes."
        )
    finite = f"L'anonymiseur tire dans un ensemble fini de {whole(set_size)} transformations."
    if effect == "tried":
        return f"{finite} Les attaquants ont essayé chacune d'elles sur tout le monde."
    if set_size:
        said = finite
    elif size is not None:
        said = (
            f"Les tirages semblent se répéter : environ une paire de copies sur {whole(size)} est transformée de même."
        )
    else:
        said = (
            "Des enregistrements qui se ressemblent avant l'anonymisation se ressemblent après elle plus souvent que par "
            "hasard : les tirages se répètent peut-être."
        )
    if effect == "harmless":
        return said
    if set_size and tried == set_size:
        return f"{said} Les attaquants ont essayé chacune d'elles, mais les copies se ressemblent plus que ces tirages ne l'expliquent."
    if set_size:
        said += f" Les attaquants en ont essayé {whole(tried)} sur tout le monde."
    return f"{said} Un attaquant qui essaie chaque transformation peut reconnaître des personnes."


@WORDS.words("vector_lengths")
def _vector_lengths(passed: bool) -> str:
    if passed:
        return "La seule longueur des vecteurs ne fait reconnaître personne que les attaquants ne trouvent déjà."
    return "La longueur des vecteurs distingue des personnes, et aucun attaquant simulé ne s'en sert."


_TARGETS = {
    "misleading": "viennent de {place} et non de ce qui est caché : la protection est surestimée",
    "harmless": "viennent de {place} ; les personnes sont reconnues malgré tout",
    "uncertain": "semblent venir de {place}, mais ce peut être le hasard",
    "small": "au plus viennent de {place}",
}


@WORDS.words("target_voices")
def _target_voices(effect: str, share: float, known: bool, **further: Any) -> str:
    place = "la place des voix cibles" if known else "la place des groupes d'enregistrements trouvés"
    return f"{percent(share)} des erreurs de l'attaquant le plus fort {_TARGETS[effect].format(place=place)}."


@WORDS.words("words_lost")
def _words_lost(lost: int, recordings: int, silent: int) -> str:
    return (
        f"Dans {count(lost, 'enregistrement')} sur {whole(recordings)} (silencieux : {whole(silent)}), la reconnaissance de la parole ne comprend "
        "pas un mot : le silence et le bruit protègent n'importe qui."
    )


# --- fiabilité, limite, ce qu'il faut faire

_UNMADE = ("n'a pas pu être faite", "n'ont pas pu être faites")


@WORDS.words("self_checks_passed")
def _self_checks_passed(made: int, open: int) -> str:
    passed = "Aucune vérification n'a été possible"
    if made:
        passed = (
            "La seule vérification possible a réussi"
            if made == 1
            else f"Les {whole(made)} vérifications possibles ont réussi"
        )
    rest = f" ; {whole(open)} {_UNMADE[open != 1]}" if open else ""
    return f"{passed}{rest}. Cela ne signifie pas que la diffusion soit sans risque, et ne vaut que pour les attaquants simulés."


@WORDS.words("contents_not_tested")
def _contents_not_tested(habits: tuple[str, ...], every_habit: bool) -> str:
    return f"Les mots prononcés (noms, lieux){', des habitudes de parole' if habits else ''} et les bruits de fond."


@WORDS.words("limit_compared")
def _limit_compared(
    percent: float, chosen_before: bool, estimate: Estimate, place: str, group: tuple[Reference, ...] = ()
) -> str:
    when = "choisie avant cette évaluation" if chosen_before else "indiquée pour ce rapport"
    verb = {"above": "la dépasse", "unclear": "peut la dépasser", "below": "reste au-dessous"}[place]
    return f"La limite de {chance(percent)} sur 100, {when} : le pire cas, {of_hundred(estimate)} enregistrements sur 100 reliés{_within(group)}, {verb}."


_REMEDIES = {
    "strong on original speech": "Évaluer avec un système de reconnaissance plus fort : celui-ci reconnaît à peine les personnes sans anonymisation.",
    "everybody is recognized on original speech": "Évaluer avec un système qui reconnaît chacun sans anonymisation, ou exclure ceux qu'il ne reconnaît pas.",
    "adaptation helps": "Donner plus de parole d'entraînement aux attaquants : leur adaptation a échoué.",
    "anonymized differs from original": "Vérifier les fichiers : des enregistrements anonymisés ont à peine changé, ou pas du tout.",
    "recordings have their own ids": "Vérifier les identifiants : des enregistrements semblent porter ceux d'enregistrements d'autres personnes.",
    "no copies in enrollment and trials": "Retirer les doublons : des enregistrements sont à la fois dans la référence et les essais.",
    "enough speakers": "Évaluer plus de personnes : les chiffres sont encore imprécis.",
    "training speakers are others": "Entraîner les attaquants sur des personnes qui ne sont pas évaluées.",
    "enrollment and trials of different sessions": "Évaluer plusieurs sessions, pour que l'on reconnaisse des voix et non des salles ou des micros.",
    "scores without ties": "Vérifier les scores : beaucoup sont égaux, signe d'arrondis ou de copies.",
    "scores are not inverted": "Vérifier l'attaque : ses scores divulguent plus avec le signe inverse.",
    "no finite set left untried": "Tirer dans un domaine continu, ou faire essayer chaque tirage aux attaquants : nommer les tirages "
    "dans une colonne `draw`, ou donner --option choices=N.",
    "attackers ran the anonymizer": "Exécuter l'anonymiseur une seconde fois et donner ce passage aux attaquants.",
}  # fmt: skip
WORDS.words("advice_remedy")(
    lambda check: _REMEDIES.get(check) or f"Corriger ce qui a échoué ({CHECKS.get(check, check)}) et réévaluer."
)


_LACKING = ("l'attaquant qui manque", "les attaquants qui manquent")


@WORDS.words("advice_run_attackers")
def _advice_run_attackers(attackers: tuple[str, ...]) -> str:
    named = [f"{_who(name)} ({name})" for name in attackers[:2]]
    others = len(attackers) - len(named)
    more = f" ; et {others} {'autre' if others == 1 else 'autres'}" if others else ""
    return f"Simuler aussi {_LACKING[len(attackers) > 1]} : {' ; '.join(named)}{more}."
