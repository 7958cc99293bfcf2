"""Scalar code as LLVM functions: loops over few numbers in registers, lanes for what takes long."""
