"""Systems that hide a speaker: the papers' baselines, any external program, and your own."""
