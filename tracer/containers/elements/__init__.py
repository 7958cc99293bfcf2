"""What elements of native containers are, as words, and what containers are asked for.

No container lives here: nothing but the forms of what is in them.
"""
