"""What anonymized speech is still good for: words, quality, melody, timing, labels."""
