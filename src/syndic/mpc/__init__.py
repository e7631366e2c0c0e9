"""Cryptographic sub-protocols that methods use: masked sums, secure products, alignment and others."""
