"""Carriers of rows: each file alone knows the libraries it reads with."""
