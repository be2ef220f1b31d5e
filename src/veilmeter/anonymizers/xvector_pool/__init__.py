"""The B1-inspired anonymizer: a pseudo-speaker from a pool of x-vectors, spoken by a small converter."""

from veilmeter.anonymizers.xvector_pool.system import XvectorPool
from veilmeter.core.errors import need

need("torch", "safetensors", "pyworld")

__all__ = ["XvectorPool"]
