"""Callbacks and what they have of outside, while the function around them is traced.

`reads` gives them the user's own objects, names and arrays in the place of stand-ins; `conflicts`
refuses those that look at what compiled code changes meanwhile.
"""
