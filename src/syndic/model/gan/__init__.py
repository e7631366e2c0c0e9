"""Networks of VertiGAN: their shapes, and the computations in torch."""
