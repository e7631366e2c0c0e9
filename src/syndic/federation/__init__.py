"""Studies between organisations: certificates, kits, sites, the coordinator's run, and a doctor for all of it."""
