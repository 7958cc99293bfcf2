"""Checks of values, shapes and dtypes: what a program asserts, and what it is watched for.

`asserts` and `shapes` hold what programs assert, when they run and while they are traced, `annotations`
what they say of their arguments. `traps` finds the op that made the first NaN, where `jit(check=...)` or
`jt.config.check` asks for it. `capture` keeps intermediate values, which `filters` choose.
"""
