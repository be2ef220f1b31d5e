"""Every attacker, one file each: an `Attacker` at the top of a module of this package is registered."""
