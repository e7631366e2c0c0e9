"""Methods that exist for comparison: VertiGAN, DPLT, DistDiffGen, glued."""
