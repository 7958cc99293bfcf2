"""The fork-join pool behind `jitney_parallel_for`, written in LLVM IR."""
