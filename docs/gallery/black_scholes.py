"""Options and their Greeks

A European call has a formula, an Asian one (on the mean of the price) only a simulation. The
Greeks, derivatives of the price by what it depends on, come from the formula and from the
simulation by the same call of `jt.grad`.

Method: F. Black and M. Scholes (1973); P. Boyle's simulation (1977), differentiated path by path
(M. Broadie and P. Glasserman, 1996).
"""

import math

import numpy as np

import jitney as jt


def call(spot, volatility, rate, strike, years):
    """The price of a European call."""
    spread = volatility * math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread

    def normal(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    return spot * normal(d1) - strike * math.exp(-rate * years) * normal(d1 - spread)


def asian(spot, volatility, rate, strike, years, noise):
    """The price of a call on the mean, over the given paths."""
    paths, days = noise.shape
    dt = years / days
    total = 0.0
    for path in range(paths):
        price, mean = spot, 0.0
        for day in range(days):
            price *= math.exp(
                (rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * noise[path, day]
            )
            mean += price / days
        total += max(mean - strike, 0.0)
    return math.exp(-rate * years) * total / paths


@jt.jit
def surface(spots, volatilities, rate, strike, years):
    """Price and delta of European calls for all pairs."""
    price = np.empty((len(volatilities), len(spots)))
    delta = np.empty_like(price)
    for i, volatility in enumerate(volatilities):
        for j, spot in enumerate(spots):
            price[i, j], delta[i, j] = jt.value_and_grad(call)(
                spot, volatility, rate, strike, years
            )
    return price, delta


@jt.jit
def greeks(spot, volatility, rate, strike, years, noise):
    """Price, delta, vega and rho of the Asian call."""
    price, slopes = jt.value_and_grad(asian, argnums=(0, 1, 2))(
        spot, volatility, rate, strike, years, noise
    )
    return price, *slopes


def main(paths=20_000, days=64, points=200):
    """Prices and deltas of European calls; price, delta, vega and rho of the Asian one."""
    spots, volatilities = np.linspace(50, 150, points), np.linspace(0.05, 0.6, points)
    price, delta = surface(spots, volatilities, 0.03, 100.0, 1.0)
    noise = np.random.default_rng(14).normal(size=(paths, days))
    return price, delta, np.array(greeks(100.0, 0.2, 0.03, 100.0, 1.0, noise))


def picture(axes):
    price, delta, (value, *slopes) = main(2000)
    for ax, image, title in zip(axes, (price, delta), ("price", "delta"), strict=True):
        ax.imshow(image, origin="lower", aspect="auto", extent=(50, 150, 0.05, 0.6))
        ax.set_title(title)
    axes[0].set_ylabel("volatility")
    axes[0].set_xlabel("spot")
    axes[1].set_xlabel("Asian: " + ", ".join(f"{v:.3g}" for v in (value, *slopes)))
