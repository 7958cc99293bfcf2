"""Where programs run, and what is called with arrays that are on a GPU.

device_calls  What is called with DeviceArrays outside of tracing is compiled
devices       Where programs run: `jt.devices`, `jt.device`, `jt.device_put`
"""
