"""Every attacker that veilmeter brings: an `Attacker` at the top of a module of this package is registered."""
