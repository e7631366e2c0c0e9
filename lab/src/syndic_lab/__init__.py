"""The lab of Syndic: benches, audits, reproductions and peers. No product path needs it."""
