"""veilmeter: measure what a voice anonymizer still gives away."""

from veilmeter._version import __version__
from veilmeter.errors import InputError, VeilmeterError
from veilmeter.estimate import Estimate

__all__ = ["Estimate", "InputError", "VeilmeterError", "__version__"]
