"""PyTorch modules: encoders, scorers, labeler, taggers, annotator, segmenter and structured losses."""
