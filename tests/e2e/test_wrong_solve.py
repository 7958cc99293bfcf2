"""What users of `jt.solve` do wrong, and what they are told."""

import numpy as np
from wrong_programs import WrongPrograms

import jitney as jt
from jitney import solve

wrong = WrongPrograms(__file__)
ONES, EYE = np.ones(2), np.eye(3)


def square(x):
    return (x * x).sum()


def falling(t, y):
    return -y


wrong.add(
    a_vector_minimized=lambda: solve.minimize(lambda x: x * x, ONES),
    a_method_that_is_not_there=lambda: solve.minimize(square, ONES, method="CG"),
    an_option_of_another_method=lambda: solve.minimize(square, ONES, options={"maxfun": 3}),
    a_matrix_to_begin_with=lambda: solve.minimize(square, np.ones((2, 2))),
    an_array_minimized=lambda: solve.minimize(ONES, ONES),
    a_guess_in_words=lambda: solve.minimize(square, ["a", "b"]),
    a_gradient_of_fewer=lambda: solve.minimize(square, ONES, jac=lambda x: 2 * x[:1]),
    fewer_equations_than_unknowns=lambda: solve.root(lambda x: x[:1], ONES),
    another_method_for_roots=lambda: solve.root(lambda x: x, ONES, method="krylov"),
    another_option_for_roots=lambda: solve.root(lambda x: x, ONES, options={"ftol": 1}),
    no_bracket=lambda: solve.root_scalar(lambda x: x, method="brentq"),
    a_bracket_of_one_end=lambda: solve.root_scalar(lambda x: x, bracket=1.0),
    no_first_guess=lambda: solve.root_scalar(lambda x: x),
    a_method_of_other_derivatives=lambda: solve.root_scalar(lambda x: x, method="halley", x0=1.0),
    equal_signs=lambda: solve.brentq(lambda x: x * x + 1, 0.0, 1.0),
    too_few_iterations=lambda: solve.brentq(lambda x: x * x - 0.1, 0.0, 1.0, maxiter=2),
    a_root_that_is_not_there=lambda: solve.newton(lambda x: x * x + 1, 0.5),
    another_loss=lambda: solve.least_squares(lambda x: x, ONES, loss="l1"),
    another_method_for_squares=lambda: solve.least_squares(lambda x: x, ONES, method="newton"),
    data_of_two_lengths=lambda: solve.curve_fit(lambda x, a: a * x, np.arange(4.0), np.arange(3.0)),
    a_guess_for_fewer=lambda: solve.curve_fit(lambda x, a, b: a * x + b, ONES, ONES, p0=[1.0]),
    a_matrix_for_other_vectors=lambda: solve.cg(EYE, ONES),
    several_right_hand_sides=lambda: solve.gmres(EYE, EYE),
    a_function_that_is_not_square=lambda: solve.bicgstab(lambda v: v[:2], np.ones(3)),
    another_preconditioner=lambda: solve.gmres(EYE, np.ones(3), M=np.eye(2)),
    a_shorter_guess=lambda: solve.cg(EYE, np.ones(3), x0=ONES),
    a_method_of_first_order=lambda: solve.solve_ivp(falling, (0, 1), [1.0], method="Euler"),
    arguments_of_odeint=lambda: solve.solve_ivp(lambda y, t: -y, (0, 1), ONES),
    a_slope_of_fewer=lambda: solve.solve_ivp(lambda t, y: y[:1], (0, 1), ONES),
    a_matrix_integrated=lambda: solve.solve_ivp(falling, (0, 1), np.eye(2)),
    one_end=lambda: solve.solve_ivp(falling, 1.0, [1.0]),
    three_ends=lambda: solve.solve_ivp(falling, (0, 1, 2), [1.0]),
    a_time_beyond_the_end=lambda: solve.solve_ivp(falling, (0, 1), [1.0], t_eval=[0.5, 2.0]),
    times_out_of_order=lambda: solve.solve_ivp(falling, (0, 1), [1.0], t_eval=[0.5, 0.2]),
    a_tolerance_below_0=lambda: solve.solve_ivp(falling, (0, 1), [1.0], rtol=-1),
    a_first_step_below_0=lambda: solve.solve_ivp(falling, (0, 1), [1.0], first_step=-0.1),
    steps_of_0=lambda: solve.solve_ivp(falling, (0, 1), [1.0], max_step=0.0),
    an_adjoint_of_all_steps=lambda: solve.solve_ivp(falling, (0, 1), [1.0], gradient="adjoint"),
    another_gradient=lambda: solve.solve_ivp(falling, (0, 1), [1.0], gradient="backward"),
    an_event_that_is_a_number=lambda: solve.solve_ivp(falling, (0, 1), [1.0], events=0.5),
    an_event_of_two_numbers=lambda: solve.solve_ivp(falling, (0, 1), ONES, events=lambda t, y: y),
    a_vector_integrated=lambda: solve.quad(lambda x: np.array([x, x]), 0.0, 1.0),
    several_ends=lambda: solve.quad(lambda x: x, [0.0, 1.0], 1.0),
    a_shape_that_is_missing=lambda: solve.stats.gamma.logpdf(1.0),
    a_parameter_by_another_name=lambda: solve.stats.norm.logpdf(1.0, sigma=2.0),
    a_covariance_of_fewer=lambda: solve.stats.multivariate_normal.logpdf(
        np.zeros(3), cov=np.eye(2)
    ),
)


@wrong
def an_event_that_ends_in_words():
    def event(t, y):
        return y[0]

    event.terminal = "yes"
    solve.solve_ivp(falling, (0, 1), [1.0], events=event)


@wrong
def an_event_with_a_direction_in_words():
    def event(t, y):
        return y[0] - 0.5

    event.direction = "down"
    solve.solve_ivp(falling, (0, 1), [1.0], events=event)


@wrong
def an_equation_of_fewer():
    def root(a):
        return solve.custom_root(lambda x: (x * a)[:1], ONES, lambda f, x: x).sum()

    jt.grad(root)(2.0)


wrong.add(
    an_integrator_of_old=lambda: solve.odeint(lambda y, t: -y, 1.0, np.arange(3.0)),
)


@wrong.each
def test_wrong_programs(program, tmp_path):
    wrong.check(program, tmp_path)
