"""Sums of products: contractions, convolutions, attention.

The one convolution op is closed under its derivatives; attention is one op, and its derivative
another.
"""
