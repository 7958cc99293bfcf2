"""Sorting, selection and the positions of truths, on CPUs and GPUs.

Keys are encoded as unsigned integers whose order is NumPy's. On CPUs rows are sorted by what fits
the machine and the key: quicksort that compresses vectors, a merge sort, or digits. On GPUs by a
merge sort whose merges are cut evenly, long rows digit by digit; parts of sorted rows are found by
digits, and only they are sorted. What is true in rows is found by words of 64.
"""
