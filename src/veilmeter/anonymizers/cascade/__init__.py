"""The reference that protects: speech to text to speech, in a pseudo-voice."""

from veilmeter.anonymizers.cascade.system import Cascade
from veilmeter.core.errors import need

need("onnxruntime", "soxr")

__all__ = ["Cascade"]
