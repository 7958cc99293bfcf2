"""A spectrogram, and a Fourier transform by hand

A chirp and two tones, cut into windows that overlap; each is transformed. Beside NumPy's transform
stands Cooley and Tukey's, written as a loop over complex numbers in place.

Method: J. W. Cooley and J. W. Tukey (1965); H. Hann's window.
"""

import numpy as np

import jitney as jt


@jt.jit
def fft(x):
    """The Fourier transform of 2**k numbers."""
    n = len(x)
    x = x.astype(np.complex128)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            x[i], x[j] = x[j], x[i]
    size = 2
    while size <= n:
        turn = np.exp(-2j * np.pi / size)
        for start in range(0, n, size):
            w = 1.0 + 0j
            for k in range(start, start + size // 2):
                even, odd = x[k], w * x[k + size // 2]
                x[k], x[k + size // 2] = even + odd, even - odd
                w *= turn
        size *= 2
    return x


@jt.jit
def spectrogram(sound, width, hop):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(width) / width)
    count = (len(sound) - width) // hop + 1
    power = np.empty((width // 2 + 1, count))
    for n in range(count):
        part = sound[n * hop : n * hop + width] * window
        power[:, n] = np.abs(np.fft.rfft(part)) ** 2
    return 10 * np.log10(power + 1e-10)


@jt.jit
def by_hand(sound, width, hop):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(width) / width)
    count = (len(sound) - width) // hop + 1
    power = np.empty((width // 2 + 1, count))
    for n in range(count):
        spectrum = fft(sound[n * hop : n * hop + width] * window)
        for k in range(width // 2 + 1):
            power[k, n] = spectrum[k].real ** 2 + spectrum[k].imag ** 2
    return 10 * np.log10(power + 1e-10)


def main(seconds=4.0, rate=16_000, width=512):
    """The spectrogram in decibels by NumPy's transform and by hand."""
    t = np.arange(int(seconds * rate)) / rate
    sound = np.sin(2 * np.pi * (300 * t + 700 * t**2 / seconds * 2))
    sound += 0.3 * np.sin(2 * np.pi * 5000 * t) * (np.sin(2 * np.pi * 1.5 * t) > 0)
    sound += 0.01 * np.random.default_rng(13).normal(size=len(t))
    return spectrogram(sound, width, width // 4), by_hand(sound, width, width // 4)


def picture(ax):
    power, _ = main(2.0)
    ax.imshow(power, origin="lower", aspect="auto", extent=(0, 2, 0, 8), vmin=-40, cmap="magma")
    ax.set_xlabel("seconds")
    ax.set_ylabel("kHz")
