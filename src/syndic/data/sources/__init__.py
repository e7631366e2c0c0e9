"""Carriers of rows, one file each: it alone knows the library it reads with."""
