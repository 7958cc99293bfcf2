"""What lies above `jit`: operators of arrays on a GPU, and the array API's questions to a namespace.

array_api         What the Python array API standard asks of a namespace beside its functions
device_functions  What computes with `DeviceArray`s outside of compiled functions: operators
"""
