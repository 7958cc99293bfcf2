"""Attention and its derivative, on CPUs and GPUs.

cpu_backward       The derivative of attention as an LLVM function (see `attention`)
cpu_forward        Attention as LLVM functions
cuda_attention     Attention as kernels that keep no matrix of scores
cuda_kernels       The kernels of attention: what is done with a block of scores
cuda_lowering      Lowering of attention and its derivative to the kernels of
cuda_panels        Rows of matrices on their way to shared memory
cuda_plan          Attention on GPUs as plain data: what is computed
cuda_products      The products inside attention: scores of rows and columns
cuda_tensor_cores  The products inside attention on tensor cores
cuda_views         Where operands and results of attention lie, as matrices in arrays
cuda_walk          The walk of a block of attention over its columns: which, in what order
lower_attention    Lowering of attention and its derivative
"""
