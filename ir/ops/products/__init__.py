"""Sums of products: contractions, convolutions, attention."""
