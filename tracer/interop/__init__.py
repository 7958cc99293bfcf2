"""What lies above `jit`: operators of arrays on a GPU, compiled one by one, and the array API's
questions to a namespace.
"""
