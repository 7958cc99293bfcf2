"""Functions that call themselves under conditions which only run time knows: one native function each.

    def fill(i, j):
        if grid[i, j] == 0:
            grid[i, j] = 1
            fill(i + 1, j)

The body is traced once, as the region of a `recursion` op; calls of itself are `recurse` ops in it.
What they hand over is found as what loops carry is (`carried`): the body is traced again until it is
settled which arguments differ from call to call, what is given back, and what is changed of what lives
outside: arrays, attributes, variables of functions around, elements of containers (`bodies`).

`recursive` is what users write, and what a function becomes that turns out to call itself without end
while it is traced.
"""
