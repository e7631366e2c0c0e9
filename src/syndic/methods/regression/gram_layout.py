"""Goes when pooled-gram and mixing import from `syndic.model.gram.rows`."""

from syndic.model.gram.rows import MOST_BITS, Clip, Pair, check_names, clip_of, products_of

__all__ = ["MOST_BITS", "Clip", "Pair", "check_names", "clip_of", "products_of"]
