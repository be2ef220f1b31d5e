"""Tiny trees of the VoicePrivacy challenges of 2020 to 2026, with every kind of folder they have. The recordings hold
no sound: these are for what reads lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

People = Mapping[str, Sequence[str]]

LANGUAGES = ("en", "de", "fr", "es", "cn", "ja")
TRAINING = {"en": "english", "de": "german", "fr": "french", "es": "spanish"}
# How utterances are called: LibriSpeech, Multilingual LibriSpeech, AISHELL-3, JVS, VCTK.
IDS = {
    "libri": "{0}-128104-{1:04d}",
    "cn": "{0}{1:04d}",
    "ja": "{0}_VOICEACTRESS100_{1:03d}",
    "vctk": "{0}_{1:03d}_mic2",
}
PEOPLE = {
    "cn": ("SSB0009", "SSB0011", "SSB0012", "SSB0016"),
    "ja": ("jvs001", "jvs002", "jvs003", "jvs004"),
    "vctk": ("p226", "p227", "p228", "p229"),
    "libri": ("1272", "1462", "1673", "1919"),
}


def people_of(dataset: str, first: int, count: int) -> dict[str, list[str]]:
    speakers = PEOPLE.get(dataset, ("10001", "10002", "10003", "10004"))
    form = IDS.get(dataset, "{0}_8844_{1:06d}")
    return {speaker: [form.format(speaker, number) for number in range(first, first + count)] for speaker in speakers}


def key_of(enrolled: Sequence[str], tried: People) -> str:
    """Everybody who is enrolled against every trial."""
    return "".join(
        f"{name} {utterance} {'target' if name == speaker else 'nontarget'}\n"
        for name in enrolled
        for speaker, spoken in tried.items()
        for utterance in spoken
    )


def data_folder(data: Path, name: str, people: People, *, suffix: str = "", upper: bool = False, **files: str) -> Path:
    """Original speech with its lists, or with a suffix nothing but `wav/`, as the challenges ask for."""
    place = data / f"{name}{suffix}"
    (place / "wav").mkdir(parents=True)
    rows = [(utterance, speaker) for speaker, spoken in people.items() for utterance in spoken]
    for utterance, _ in rows:
        (place / "wav" / f"{utterance}.wav").write_bytes(f"{name}{suffix}".encode())
    if suffix:
        return place
    genders = {speaker: "FM"[number % 2] for number, speaker in enumerate(people)}
    lists = {
        "wav.scp": "".join(f"{u} {data.name}/{name}/wav/{u}.wav\n" for u, _ in rows),
        "utt2spk": "".join(f"{u} {s}\n" for u, s in rows),
        "spk2utt": "".join(f"{s} {' '.join(spoken)}\n" for s, spoken in people.items()),
        "spk2gender": "".join(f"{s} {g if upper else g.lower()}\n" for s, g in genders.items()),
        "text": "".join(f"{u} MISTER QUILTER IS THE APOSTLE\n" for u, _ in rows),
        "utt2dur": "".join(f"{u} 5.855\n" for u, _ in rows),
        **files,
    }
    for file, text in lists.items():
        (place / file).write_text(text, encoding="utf-8")
    return place


def emotion_folder(data: Path, name: str, suffix: str) -> None:
    people = {str(n): [f"Ses01F_impro0{n}_{mark}000" for mark in "FM"] for n in range(1, 4)}
    spoken = [utterance for group in people.values() for utterance in group]
    labels = "".join(f"{u} {('neu', 'sad')[n % 2]}\n" for n, u in enumerate(spoken))
    folds = "".join(f"{speaker} {number}\n" for number, speaker in enumerate(people, 1))
    for mark in ("", suffix):
        data_folder(data, name, people, suffix=mark, utt2emo=labels, spk2fold=folds)


def scored_sets(data: Path, dataset: str, suffix: str, roles: Sequence[str], *, upper: bool = False) -> None:
    """Enrollment and trials of dev and test, original and anonymized; three of four people are enrolled, and a list of
    one gender has every second of them."""
    genders = {"f": slice(0, None, 2), "m": slice(1, None, 2)}
    for split in ("dev", "test"):
        everybody = people_of(dataset, 0, 2)
        enrolled = dict(list(everybody.items())[:3])
        ids = "".join(f"{u}\n" for spoken in enrolled.values() for u in spoken)
        for mark in ("", suffix):
            name = f"{dataset}_{split}"
            data_folder(data, f"{name}_enrolls", enrolled, suffix=mark, upper=upper, enrolls=ids)
            for role in roles:
                tried = dict(list(people_of(dataset, 2, 2).items())[genders.get(role.split("_")[1], slice(None))])
                trials = key_of([speaker for speaker in enrolled if speaker in tried], tried)
                data_folder(data, f"{name}_{role}", tried, suffix=mark, upper=upper, trials=trials)


def tree_2024(root: Path, suffix: str = "_mcadams") -> Path:
    data = root / "data"
    scored_sets(data, "libri", suffix, ("trials_f", "trials_m"))
    for split in ("dev", "test"):
        data_folder(data, f"libri_{split}", people_of("libri", 0, 4))
        data_folder(data, f"libri_{split}_asr", people_of("libri", 2, 2))
        data_folder(data, f"libri_{split}_asr", people_of("libri", 2, 2), suffix=suffix)
        emotion_folder(data, f"IEMOCAP_{split}", suffix)
    people = {"100": ["100-121669-0000", "100-121669-0001"], "101": ["101-121669-0000"]}
    for mark in ("", suffix):
        place = data_folder(data, "train-clean-360", people, suffix=mark)
    original = data / "train-clean-360"
    scp = (original / "wav.scp").read_text().splitlines()
    (original / "wav.scp").write_text(
        "".join(f"{u} flac -c -d -s {path} |\n" for u, path in (line.split() for line in scp))
    )
    assert place.name.endswith(suffix)
    return data


def tree_2026(root: Path, suffix: str = "_b2") -> Path:
    data = root / "data"
    scored_sets(data, "libri", suffix, ("trials_mixed",))
    for language in LANGUAGES:
        scored_sets(data, language, suffix, ("trials_mixed",), upper=True)
    for number, language in enumerate(TRAINING.values()):
        people = {f"1{number}00{n}": [f"1{number}00{n}_8844_00000{k}" for k in range(2)] for n in range(2)}
        for mark in ("", suffix):
            data_folder(data, f"train_{language}", people, suffix=mark)
    for split in ("dev", "test"):
        emotion_folder(data, f"IEMOCAP_{split}", suffix)
        emotion_folder(data, f"emodata_track2_{split}", suffix)
    return data


def tree_2020(root: Path, suffix: str = "_anon") -> Path:
    """VCTK with its sentences in common, both microphones' names, and the training speech under two namings."""
    data = root / "data"
    scored_sets(data, "libri", suffix, ("trials_f", "trials_m"))
    roles = [f"trials_{gender}{kind}" for gender in "fm" for kind in ("", "_common", "_all")]
    scored_sets(data, "vctk", suffix, roles)
    sessions = {"100-121669": ["100-121669-0000"], "100-121674": ["100-121674-0000"]}
    for mark in ("", suffix):
        data_folder(data, "train-clean-360", sessions, suffix=mark)
        persons = {"100": [u for spoken in sessions.values() for u in spoken]}
        data_folder(data, "train-clean-360-asv", persons, suffix=mark)
        for role in ("enrolls_mic2", "trials_f_mic2", "trials_f_common_mic2"):
            people = people_of("vctk", 0 if role.startswith("enrolls") else 2, 2)
            data_folder(data, f"vctk_dev_{role}", people, suffix=mark, trials=key_of(list(people), people))
    return data
