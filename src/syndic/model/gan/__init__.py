"""Networks of VertiGAN: their shapes, and what torch computes."""
