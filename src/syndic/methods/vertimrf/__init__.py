"""VertiMRF, with its sketches."""
