"""Ops that compiled loops of libraries compute, and the algebra of matrices for their derivatives."""
