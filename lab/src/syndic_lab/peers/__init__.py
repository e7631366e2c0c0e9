"""Other libraries, measured beside Syndic."""
