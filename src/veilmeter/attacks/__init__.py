"""Attackers: what they know, and one attack per module."""
