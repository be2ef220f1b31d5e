"""From samples to something: audio, extractors."""
