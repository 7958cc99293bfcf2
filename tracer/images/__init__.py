"""Convolution, pooling, resizing and attention: what networks are made of beside products.

attention    Attention: `jt.dot_product_attention`
convolution  Convolutions over images and sequences: `jt.conv` and `jt.conv_transpose`
pooling      Pooling and other reductions over moving windows
resizing     Resizing images: `jt.image.resize` (`jt.resize` is NumPy's, which repeats elements)
spatial      What convolution and pooling share: layouts, one setting per spatial dim, padding
"""

from . import attention, convolution, pooling, resizing  # noqa: F401  (each enters its functions)
