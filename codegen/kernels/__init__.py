"""Kernel families, one idea in one folder: how an op is lowered, its kernels on CPUs (`cpu_*`) and on
GPUs (`cuda_*`)."""
