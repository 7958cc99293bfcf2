"""Sorting, selection and the places of truths, on CPUs and GPUs.

cpu_network       Sorting as many keys as a few vector registers hold: a bitonic network
cpu_places        The places of sorted elements of 64 bits
cpu_quicksort     Sorting rows of unsigned keys by vectorised quicksort
cpu_radix         Sorting one long row of unsigned keys: least significant digit first
cpu_row_parts     What the functions of `sorting` share: rows cut into parts
cpu_selection     A part of a sorted row, without sorting the row: top-k, partitions, medians
cpu_sorting       Sorting rows of unsigned keys, as LLVM functions for each kind of element
cpu_true_places   Where rows of truths are true, or rows of bytes are 1, then 2, and so on
cuda_elements     Elements of a sort in registers and in memory: numbers
cuda_radix        Sorting long rows of encoded elements by digits, from the last one on
cuda_radix_plan   Which rows are sorted by digits, how they are cut
cuda_select_plan  The step that finds a part of what rows would be if they were sorted
cuda_selection    Parts of sorted rows without sorting the rows: the largest few, a median
cuda_sorting      Sorting rows of encoded elements (`lower_sorting`)
cuda_steps        The launches of a sort: merges, or passes by digits
cuda_turns        Blocks that take tiles of rows in turns, and count what comes before theirs
lower_sorting     Lowering of sort and argsort: elements are encoded as unsigned keys
"""
