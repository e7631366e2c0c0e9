"""Latent trees and top-down specialisation."""
