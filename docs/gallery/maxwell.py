"""Light in a grid: Maxwell's equations

A pulse meets a dielectric cylinder. Electric and magnetic fields live on staggered grids and leap
over each other; the simulation is a class whose methods change its arrays.

Method: finite differences in time domain, on K. S. Yee's grid (1966).
"""

import numpy as np

import jitney as jt


class Fdtd:
    def __init__(self, size):
        self.ez = np.zeros((size, size))
        self.hx = np.zeros((size, size - 1))
        self.hy = np.zeros((size - 1, size))
        x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
        cylinder = np.hypot(x - size * 0.6, y - size * 0.5) < size * 0.15
        self.permittivity = np.where(cylinder, 4.0, 1.0)
        self.time = 0

    def magnetic(self, courant):
        self.hx -= courant * np.diff(self.ez, axis=1)
        self.hy += courant * np.diff(self.ez, axis=0)

    def electric(self, courant):
        curl = np.diff(self.hy[:, 1:-1], axis=0) - np.diff(self.hx[1:-1, :], axis=1)
        self.ez[1:-1, 1:-1] += courant / self.permittivity[1:-1, 1:-1] * curl

    def source(self):
        size = len(self.ez)
        t = self.time - 30.0
        self.ez[size // 5, size // 2] += np.exp(-((t / 10.0) ** 2)) * np.cos(0.4 * t)

    @jt.jit
    def run(self, steps, courant=0.5):
        energy = np.zeros(steps)
        for n in range(steps):
            self.magnetic(courant)
            self.electric(courant)
            self.source()
            self.time += 1
            energy[n] = 0.5 * np.sum(self.permittivity * self.ez**2)
        return energy


def main(size=300, steps=420):
    """The electric field at the end, the permittivity, and the energy in each step."""
    simulation = Fdtd(size)
    energy = simulation.run(steps)
    return simulation.ez, simulation.permittivity, energy


def picture(ax):
    ez, permittivity, _ = main(steps=300)
    ax.imshow(ez.T, cmap="RdBu", vmin=-0.1, vmax=0.1)
    ax.contour(permittivity.T, levels=[2.0], colors="k")
    ax.axis("off")
