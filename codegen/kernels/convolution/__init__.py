"""Convolutions and windows, on CPUs and GPUs.

On CPUs micro-kernels as of products, whose rows are the pixels under the kernel's window: no
operand is copied once per tap. The gradient of a kernel, a convolution with few results and many
taps, is a second way of cutting the same sum. On GPUs convolutions and their gradients are products
whose matrix of pixels is addresses; few features (depthwise) are sums written out, and windows
folds of folds.
"""
