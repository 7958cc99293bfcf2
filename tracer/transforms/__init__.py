"""Transformations of functions: derivatives, batching, derivatives of the user's own.

application        One application of a function to arguments
check_grads        `check_grads` and `compute_gradient_error`
custom             `custom_vjp` and `custom_jvp`: functions with derivatives of the user's own
custom_call        One call of a function with a derivative rule
custom_rules       What derivative rules give, held to what they have to give
derivatives        Derivatives as users call them: `grad`, `value_and_grad`, `vjp`, `jvp`
device_transforms  `jt.vjp` and `jt.linearize` called with DeviceArrays outside of tracing
differentiable     What may be differentiated: the checks of arguments, results
jacobians          Jacobians: `jacrev`, `jacfwd`, `hessian`, one row or column at a time
linear             Derivatives as linear maps: `linearize`, `linear_transpose`, `hvp`
remat              `checkpoint`: values that the backward pass computes again instead of keeping
vectorize          `vectorize`: a function of arrays with given axes becomes a function over all
vmap               `vmap`: a function of one example becomes a function of many
vmap_axes          Which axis of each argument of `vmap` counts the examples
"""
