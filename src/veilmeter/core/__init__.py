"""What knows nothing of speech: estimates, intervals, engine, errors, files, text."""
