"""Trees of objects that compiled code makes and walks, by functions and methods that call themselves."""

import heapq
import math

import numpy as np
import pytest

import jitney as jt

RANDOM = np.random.default_rng(0)


class Node:
    def __init__(self, key):
        self.key, self.left, self.right, self.height = key, None, None, 1


def insert(node, key):
    if node is None:
        return Node(key)
    if key < node.key:
        node.left = insert(node.left, key)
    else:
        node.right = insert(node.right, key)
    return node


def in_order(node, out):
    if node is not None:
        in_order(node.left, out)
        out.append(node.key)
        in_order(node.right, out)


def depth(node):
    return 0 if node is None else 1 + max(depth(node.left), depth(node.right))


def sorted_by_a_tree(keys):
    root = None
    for key in keys:
        root = insert(root, key)
    out = []
    in_order(root, out)
    return out, depth(root)


def height(node):
    return 0 if node is None else node.height


def measured(node):
    node.height = 1 + max(height(node.left), height(node.right))
    return node


def to_the_right(node):
    up = node.left
    node.left, up.right = up.right, node
    measured(node)
    return measured(up)


def to_the_left(node):
    up = node.right
    node.right, up.left = up.left, node
    measured(node)
    return measured(up)


def balanced(node, key):
    if node is None:
        return Node(key)
    if key < node.key:
        node.left = balanced(node.left, key)
    else:
        node.right = balanced(node.right, key)
    measured(node)
    if height(node.left) > height(node.right) + 1:
        return to_the_right(node)
    if height(node.right) > height(node.left) + 1:
        return to_the_left(node)
    return node


def of_a_balanced_tree(keys):
    root = None
    for key in keys:
        root = balanced(root, key)
    return root.height, root.key


class Quad:
    """A square that parts into four where points are, and their centre of mass."""

    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size
        self.mass, self.points, self.parts = 0.0, 0, None

    def add(self, x, y, depth):
        self.points += 1
        self.mass += x + y
        if depth == 0:
            return
        half = self.size / 2
        if self.parts is None:
            self.parts = [
                Quad(self.x + i * half, self.y + j * half, half) for j in (0, 1) for i in (0, 1)
            ]
        self.parts[int(x >= self.x + half) + 2 * int(y >= self.y + half)].add(x, y, depth - 1)

    def force(self, x, y):
        distance = math.hypot(x - self.x, y - self.y) + 0.1
        if self.points == 0:
            return 0.0
        if self.parts is None or self.size / distance < 0.5:
            return self.mass / distance
        total = 0.0
        for part in self.parts:
            total += part.force(x, y)
        return total


def of_points(points):
    root = Quad(0.0, 0.0, 1.0)
    for x, y in points:
        root.add(x, y, 2)
    return root.force(0.3, 0.4), root.points


class Letter:
    def __init__(self):
        self.children, self.ends = {}, False


class Words:
    def __init__(self):
        self.root = Letter()

    def add(self, word):
        at = self.root
        for c in word:
            if c not in at.children:
                at.children[c] = Letter()
            at = at.children[c]
        at.ends = True

    def has(self, word):
        at = self.root
        for c in word:
            if c not in at.children:
                return False
            at = at.children[c]
        return at.ends


def known(words, asked):
    tree = Words()
    for word in words:
        tree.add(word)
    return [tree.has(word) for word in asked]


class Weight:
    def __init__(self, weight, left=None, right=None):
        self.weight, self.left, self.right = weight, left, right

    def __lt__(self, other):
        return self.weight < other.weight


def cost(node, depth):
    if node.left is None:
        return node.weight * depth
    return cost(node.left, depth + 1) + cost(node.right, depth + 1)


def huffman(weights):
    heap = [Weight(w) for w in weights]
    heapq.heapify(heap)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, Weight(a.weight + b.weight, a, b))
    return cost(heap[0], 0)


class Split:
    def __init__(self, column=None, limit=None, below=None, above=None, value=None):
        self.column, self.limit, self.value = column, limit, value
        self.below, self.above = below, above


def grown(x, y, depth):
    if depth == 0 or len(np.unique(y)) == 1:
        return Split(value=np.mean(y))
    column, limit, best = None, None, np.inf
    for j in range(x.shape[1]):
        for t in x[:, j]:
            left = x[:, j] <= t
            if left.all():
                continue
            error = np.var(y[left]) + np.var(y[~left])
            if error < best:
                column, limit, best = j, t, error
    if column is None:
        return Split(value=np.mean(y))
    left = x[:, column] <= limit
    return Split(
        column, limit, grown(x[left], y[left], depth - 1), grown(x[~left], y[~left], depth - 1)
    )


def predicted(node, x):
    if node.value is not None:
        return node.value
    return predicted(node.below if x[node.column] <= node.limit else node.above, x)


def decided(x, y):
    tree = grown(x, y, 1)
    return np.array([predicted(tree, row) for row in x])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (sorted_by_a_tree, (RANDOM.permutation(40),)),
        (of_a_balanced_tree, (np.arange(31),)),
        (of_points, (RANDOM.random((12, 2)),)),
        (known, (RANDOM.integers(0, 3, (10, 4)), RANDOM.integers(0, 3, (6, 4)))),
        (huffman, (np.array([5, 9, 12, 13, 16, 45]),)),
        (decided, (RANDOM.normal(size=(8, 2)), RANDOM.integers(0, 2, 8) / 1)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_results_are_pythons(function, arguments):
    compiled = jt.jit(function)
    for _ in range(2):
        jt.tree.map(np.testing.assert_allclose, compiled(*arguments), function(*arguments))
