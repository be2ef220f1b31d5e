"""What an assessment found: typed, and the conclusions drawn from it."""
