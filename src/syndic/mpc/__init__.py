"""Parts: small protocols used inside others."""
