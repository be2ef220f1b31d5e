"""The results of an assessment: typed, and the conclusions drawn from it."""
