"""The game of life

A world that wraps around, as an object with rules that are text, as in "B3/S23". Patterns are lists
of strings.

Method: J. H. Conway's game (M. Gardner, 1970).
"""

import numpy as np

import jitney as jt

GUN = [
    "........................O...........",
    "......................O.O...........",
    "............OO......OO............OO",
    "...........O...O....OO............OO",
    "OO........O.....O...OO..............",
    "OO........O...O.OO....O.O...........",
    "..........O.....O.......O...........",
    "...........O...O....................",
    "............OO......................",
]


class Life:
    def __init__(self, size, rule="B3/S23"):
        self.cells = np.zeros((size, size), dtype=np.uint8)
        born, stays = rule.split("/")
        self.born = {int(c) for c in born[1:]}
        self.stays = {int(c) for c in stays[1:]}
        self.age = 0

    def put(self, pattern, row, column):
        for i, line in enumerate(pattern):
            for j, c in enumerate(line):
                self.cells[row + i, column + j] = c == "O"

    def step(self):
        n, m = self.cells.shape
        new = np.zeros_like(self.cells)
        for i in range(n):
            for j in range(m):
                around = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            around += self.cells[(i + di) % n, (j + dj) % m]
                if self.cells[i, j]:
                    new[i, j] = around in self.stays
                else:
                    new[i, j] = around in self.born
        self.cells = new
        self.age += 1

    @jt.jit
    def run(self, steps):
        alive = np.zeros(steps, dtype=np.int64)
        for t in range(steps):
            self.step()
            alive[t] = self.cells.sum()
        return alive


def main(size=200, steps=300):
    """The cells at the end, and how many lived in each generation."""
    life = Life(size)
    life.put(GUN, 2, 2)
    alive = life.run(steps)
    return life.cells, alive


def picture(ax):
    cells, _ = main(80, 240)
    ax.imshow(cells, cmap="binary")
    ax.axis("off")
