"""What functions take and give: pytrees, dtypes, shapes, memory order, foreign arrays, generators.

All of it is about ordinary values; nothing here knows that there are traces.
"""
