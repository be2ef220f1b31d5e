"""What is measured: corpora, embeddings, scores, and their file formats."""
