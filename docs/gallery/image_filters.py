"""Image filters

An image is blurred, sharpened, searched for edges, and freed from noise by medians. One convolution
takes any kernel; it is the plain loop over pixels. Edges are followed as J. Canny did, by a stack
of pixels.

Method: Gaussian and Sobel's kernels; medians of J. W. Tukey; edges that are connected to strong
ones (J. Canny, 1986).
"""

import numpy as np

import jitney as jt


@jt.jit
def convolve(image, kernel):
    height, width = image.shape
    kh, kw = kernel.shape
    out = np.zeros_like(image)
    for i in range(height):
        for j in range(width):
            total = 0.0
            for k in range(kh):
                for m in range(kw):
                    y = min(max(i + k - kh // 2, 0), height - 1)
                    x = min(max(j + m - kw // 2, 0), width - 1)
                    total += image[y, x] * kernel[k, m]
            out[i, j] = total
    return out


@jt.jit
def median(image, radius):
    padded = np.pad(image, radius, mode="edge")
    out = np.empty_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = np.median(padded[i : i + 2 * radius + 1, j : j + 2 * radius + 1])
    return out


@jt.jit
def edges(image, low, high):
    sobel = np.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    strength = np.hypot(convolve(image, sobel), convolve(image, sobel.T))
    found = strength > high
    stack = []
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            if found[i, j]:
                stack.append((i, j))
    while stack:
        i, j = stack.pop()
        for y in range(max(i - 1, 0), min(i + 2, image.shape[0])):
            for x in range(max(j - 1, 0), min(j + 2, image.shape[1])):
                if not found[y, x] and strength[y, x] > low:
                    found[y, x] = True
                    stack.append((y, x))
    return found


def scene(size, rng):
    """Discs and a gradient, with salt, pepper and noise."""
    y, x = np.mgrid[:size, :size] / size
    image = 0.3 + 0.3 * x
    for cx, cy, r, v in ((0.3, 0.35, 0.2, 0.9), (0.65, 0.6, 0.25, 0.1), (0.7, 0.25, 0.1, 0.7)):
        image[np.hypot(x - cx, y - cy) < r] = v
    image += 0.03 * rng.normal(size=image.shape)
    salted = rng.random(image.shape)
    image[salted < 0.02], image[salted > 0.98] = 0.0, 1.0
    return image


def gaussian(radius):
    line = np.exp(-0.5 * (np.arange(-2 * radius, 2 * radius + 1) / radius) ** 2)
    return np.outer(line, line) / line.sum() ** 2


def main(size=512):
    """The image, blurred, cleaned, sharpened; and its edges."""
    image = scene(size, np.random.default_rng(7))
    blurred = convolve(image, gaussian(2))
    clean = median(image, 1)
    sharp = np.clip(2 * clean - convolve(clean, gaussian(2)), 0, 1)
    return image, blurred, clean, sharp, edges(clean, 0.25, 0.6)


def picture(axes):
    for ax, image, title in zip(
        axes, main(256), ("image", "blurred", "medians", "sharpened", "edges"), strict=True
    ):
        ax.imshow(image, cmap="gray")
        ax.set_title(title)
        ax.axis("off")
