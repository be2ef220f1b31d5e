"""Speech recognizers: Moonshine, Whisper, a program or function of yours."""

from veilmeter.speech.recognizers.base import DEFAULT, RECOGNIZERS, Recognizer, Transcript, load_recognizer

__all__ = ["DEFAULT", "RECOGNIZERS", "Recognizer", "Transcript", "load_recognizer"]
