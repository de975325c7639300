"""Models to share: packed with a card into one file, listed in an index, downloaded by name, or on Hugging Face."""
