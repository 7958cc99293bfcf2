"""The main job, `python -m jitney`: a real task, done with nothing but the public names.

`digits` trains a classifier on the UCI handwritten digits and reports what the compiler did.
Nothing else in the package imports this room.
"""
