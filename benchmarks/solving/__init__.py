"""`jt.solve` beside lineax, optimistix and diffrax: values, gradients and times of twelve problems."""
