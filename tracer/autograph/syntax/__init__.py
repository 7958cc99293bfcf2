"""Functions rewritten as syntax trees: control flow, stores and expressions become calls of helpers.

Nothing here knows traced values, nor what the helpers do: that is `autograph` around it.
"""
