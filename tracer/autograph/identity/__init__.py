"""Which object is it that comes out of a branch or a loop? An op gives values; Python gives objects.

`arrays`: which results are perhaps one array; `containers`: which lists, dicts, sets and deques others
still see; `origins`: which array from outside a result is; `relations`: what a loop carries of that.
"""
