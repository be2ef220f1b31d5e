"""Speaker-embedding extractors: CAM++, GE2E, any ONNX model, or your own."""

from veilmeter.speech.extractors.base import DEFAULT, Extractor, load_extractor

__all__ = ["DEFAULT", "Extractor", "load_extractor"]
