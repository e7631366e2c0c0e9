"""Methods for comparison: VertiGAN, DPLT, DistDiffGen, glued."""
