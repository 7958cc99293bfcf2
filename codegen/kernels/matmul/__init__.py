"""Products of matrices, on CPUs and GPUs.

cpu_gemm           A matrix product as LLVM functions
cpu_tiles          Micro-kernels: a tile of C held in registers while products are summed into
cuda_boxes         Operands of products that the copy engine of sm_90 brings
cuda_emitter       Products of matrices: a tile of the result per block, a piece of it per warp
cuda_epilogues     What is done with each element of a product right away
cuda_library       Products of matrices by NVIDIA's cuBLASLt, where it is installed and wanted
cuda_lowering      Lowering of products of matrices for a GPU: operands as they lie
cuda_operands      Tiles of an operand of a product: how a block brings them to shared memory
cuda_plain         Products of matrices by ordinary arithmetic
cuda_products      Products of matrices as steps of a program
cuda_results       What comes of a product of matrices: where its tiles are
cuda_sources       What an operand of a product is
cuda_tensor_cores  Products of matrices on tensor cores
cuda_tiles         How products of matrices are cut into tiles
cuda_warpgroups    Products of matrices on sm_90a: one warp brings operands
cuda_wgmma         Products of matrices by a warpgroup of sm_90a
lower_contraction  Lowering of contractions: matrix products from micro-kernels
"""
