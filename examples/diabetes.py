"""Ridge regression by L-BFGS, which ends where the closed form is (scikit-learn's diabetes).

Weights and bias are within 2e-9 of the closed form's, over its largest number.

python examples/diabetes.py
"""

from __future__ import annotations

import numpy as np

import jitney as jt
from jitney import nn, solve


def loss(model, x, y):
    """Half of the squares that are left, and of the weights; the bias is free."""
    apart = model(x)[:, 0] - y
    return apart @ apart / 2 + nn.regularization(model)


def closed_form(x, y, penalty: float) -> np.ndarray:
    """The weights and the bias by the normal equations."""
    mean, level = x.mean(axis=0), y.mean()
    apart = x - mean
    w = np.linalg.solve(apart.T @ apart + penalty * np.eye(x.shape[1]), apart.T @ (y - level))
    return np.append(w, level - mean @ w)


def main(penalty: float = 1.0) -> float:
    """Fit, and return the largest difference to the closed form, over its largest number."""
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    model = nn.Linear(10, 1, w_reg=nn.L2(penalty / 2), dtype=np.float64, rng=0)
    start, model_of = jt.tree.ravel(model)

    def cost(flat):
        return loss(model_of(flat), x, y)

    found = solve.minimize(cost, start, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-8})
    model = model_of(found.x)
    wanted = closed_form(x, y, penalty)
    apart = np.abs(np.append(model.w, model.b) - wanted).max() / np.abs(wanted).max()
    print(f"{apart:.1e} from the closed form after {found.nit} steps: {found.message}")
    return float(apart)


if __name__ == "__main__":
    main()
