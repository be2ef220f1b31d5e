"""Data to measure: corpora, embeddings, scores, and their file formats."""
