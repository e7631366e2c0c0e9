"""NVIDIA FLARE as a runtime."""
