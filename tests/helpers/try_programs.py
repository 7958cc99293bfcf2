"""Functions with `try` around what may fail, for each of which it is known what Python gives."""

import math

import numpy as np

LinAlgError = np.linalg.LinAlgError
X = np.array([1.0, 2.0, 3.0])
REGULAR, SINGULAR = np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros((2, 2))


def inverse(a, i):
    try:
        y = np.linalg.inv(a)
    except LinAlgError:
        y = np.linalg.pinv(a) + 1
    return y


def returned(a, i):
    try:
        return np.linalg.inv(a)
    except LinAlgError:
        return a * 2


def two_statements(a, i):
    try:
        factor = np.linalg.cholesky(a)
        x = np.linalg.solve(factor, a[0])
    except LinAlgError:
        x = a[0] * 0
    return x


def two_handlers(a, i):
    try:
        return np.linalg.inv(a)[i[0], 0] + 0
    except LinAlgError:
        return np.float64(100)
    except IndexError:
        return np.float64(200)


def tuple_of_classes(a, i):
    try:
        return np.linalg.inv(a)[i[0], 0] + 0
    except (LinAlgError, IndexError):
        return np.float64(100)


def of_a_base(a, i):
    try:
        return np.linalg.inv(a)[i[0], 0] + 0
    except Exception:
        return np.float64(100)


def of_all(a, i):
    try:
        return np.linalg.inv(a)[i[0], 0] + 0
    except:  # noqa: E722
        return np.float64(100)


def of_another(a, i):
    try:
        return np.linalg.inv(a)[i[0], 0] + 0
    except IndexError:
        return np.float64(100)


def with_else(a, i):
    try:
        y = np.linalg.inv(a)
    except LinAlgError:
        z = np.float64(1)
    else:
        z = y.sum()
    return z


def inside_of_another(a, i):
    try:
        try:
            y = np.linalg.inv(a)
        except IndexError:
            y = a
        z = y[0, 0]
    except LinAlgError:
        z = np.float64(-1)
    return z


def finally_too(a, i):
    r = 0.0
    try:
        y = np.linalg.inv(a)
    except LinAlgError:
        y = a
    finally:
        r = 1.0
    return y + r


def elements(a, i):
    out = np.zeros(len(i))
    for k in range(len(i)):
        try:
            out[k] = a[i[k], 0]
        except IndexError:
            out[k] = -1.0
    return out


def stores(a, i):
    bad = 0
    for k in i:
        try:
            a[k] += 1
        except IndexError:
            bad += 1
    return bad


def goes_on(a, i):
    s = 0.0
    for k in i:
        try:
            v = a[k, 0]
        except IndexError:
            continue
        s += v
    return s


def ends(a, i):
    n = 0
    while n < 4:
        try:
            y = np.linalg.inv(a)
        except LinAlgError:
            break
        a = a - 0.5 * y @ a
        n += 1
    return n


def own_error(a, i):
    try:
        if a[0, 0] < 1:
            raise ValueError("small")
        if i[0] > 5:
            raise KeyError("large")
        y = a * 2
    except ValueError:
        y = -a
    except KeyError as error:
        assert error.args == ("large",)
        y = a * 0
    return y


def another_error(a, i):
    try:
        if a[0, 0] < 1:
            raise ValueError(f"small {a[0, 0]}")
    except ValueError:
        raise RuntimeError("again") from None
    return a


def raised_again(a, i):
    try:
        if a[0, 0] < 1:
            raise ValueError("small")
    except ValueError:
        raise
    return a


def asserted(a, i):
    try:
        assert a[0, 0] > 1
        r = 1
    except AssertionError:
        r = 0
    return r


def helper(a):
    if a[0, 0] < 1:
        raise ValueError("small")
    return a * 3


def called(a, i):
    try:
        y = helper(a)
    except ValueError:
        y = a
    return y


def float_errors(a, i):
    try:
        with np.errstate(divide="raise"):
            return 1 / a
    except FloatingPointError:
        return a


def pythons_numbers(a, i):
    s = 0.0
    for k in i:
        try:
            s += 6 / int(k) + math.sqrt(float(k))
        except ZeroDivisionError:
            s -= 1
        except ValueError:
            s -= 2
    return s


def only_finally(a, i):
    s = 0.0
    try:
        for v in a:
            if v[0] > 1:
                s += v[1]
        if s > 0.5:
            return s
    finally:
        s = 0.0
    return -1.0


def none_fails(a, i):
    try:
        if a[0, 0] > 1:
            y = a + 1
        else:
            y = a - 1
    except ValueError:
        y = a
    return y


def pythons_own(a, i):
    try:
        y = {"one": 1.0}["two"] * a
    except KeyError:
        y = a
    return y


def kept(a, i):
    c = a
    try:
        c = c * 2
        x = np.linalg.cholesky(a)
    except LinAlgError:
        x = c
    return x


def until_it_works(a, i):
    a, added = a - np.eye(2), 0.0
    for k in range(60):  # noqa: B007
        try:
            factor = np.linalg.cholesky(a)
            break
        except LinAlgError:
            a, added = a + 0.1 * np.eye(2), added + 0.1
    return np.append(factor.ravel(), [k, added])


def returned_from_a_loop(a, i):
    jitter = 1e-6
    while True:
        try:
            factor = np.linalg.cholesky(a + jitter * np.eye(2))
            return np.append(factor.ravel(), jitter)
        except LinAlgError:
            jitter *= 10
            if jitter > 100:
                raise


def how_far(a, i):
    n, seen = 0, np.zeros(3)
    try:
        n, seen[0] = 1, 5.0
        y = np.linalg.cholesky(a)[i[0], 0]
        n, seen[1] = 2, y
        y = y + np.linalg.inv(a - a[0, 0] * np.ones((2, 2)))[0, 0]
        n = 3
    except LinAlgError:
        n += 10
    except IndexError:
        n += 20
    return np.append(seen, n)


def searched(a, i):
    n = 0
    try:
        n = 1
        n += next(k for k in range(20) if a[0, 0] * k > 5)
        n += 100
    except StopIteration:
        n = -n
    return n


def in_a_loop(a, i):
    s = 0.0
    try:
        for k in range(i[0]):
            s += a[k, 0]
    except IndexError:
        s = -1.0
    return s


def while_there_are(a, i):
    try:
        k = 0
        while a[k, 0] >= 0 and a[i[k], 0] >= 0:
            k += 1
        return k
    except IndexError:
        return -5


def in_loops(a, i):
    n = 0
    for _ in range(3):
        try:
            for k in range(20):
                for j in range(i[0] + 2):
                    if a[0, 0] * k + j == 21.0:
                        raise KeyError
                    if a[j, 0] > a[1, 1] * 9:
                        break
                if k * a[1, 1] > 50:
                    raise ValueError
            n += 1
        except KeyError:
            n += 10
        except IndexError:
            n += 100
        except ValueError:
            n += 1000
    return n


def stacked(a, i):
    try:
        found = [a[int(v) % 4, 0] * v for v in np.arange(40.0) + i[0]]
    except IndexError:
        found = [0.0] * 40
    return np.array(found)


def endless_if_it_went_on(a, i):
    try:
        if a[0, 0] <= 0:
            raise ValueError
        n, x = 0, 100.0
        while x > 1:
            x -= a[0, 0]
            n += 1
        return n + power(1.0, 5.0 * a[0, 0])
    except ValueError:
        return -1


def power(x, n):
    if n < -5 or x == 0:
        raise ValueError("too small")
    return 1.0 if n <= 0 else x * power(x, n - 1)


def of_calls_of_itself(a, i):
    try:
        return power(a[0, 0], i[1]) + power(1.5, 3 * i[0])
    except ValueError:
        return -1.0


def parsed(tokens, k):
    if k >= len(tokens):
        raise IndexError("at the end")
    if tokens[k] == 0:
        left, k = parsed(tokens, k + 1)
        right, k = parsed(tokens, k)
        return left + right, k
    return tokens[k], k + 1


def of_a_parser(a, i):
    total = 0.0
    for tokens in (np.append(a, [i[0], 2.0, 0, 0]), np.append(i, [0.0, 0.0])):
        try:
            total += parsed(tokens, 0)[0]
        except IndexError:
            total -= 100
    return total


def marked(seen, k):
    if seen[k] > 0:
        raise KeyError("twice")
    seen[k] = 1
    return 1 if k == 0 else 1 + marked(seen, k - 2 if k > 1 else 0)


def with_states(a, i):
    try:
        seen = np.zeros(9)
        seen[3] = a[0, 0]
        return marked(seen, abs(i[0]) + 1)
    except KeyError:
        return -1


def of_what_was_done_before(a, i):
    done = []
    try:
        try:
            done.append(1.0)
            if i[0] > 5:
                raise ValueError("large")
            done.append(a[0, 0])
        finally:
            done.append(2.0)
    except ValueError as error:
        done.append(float(len(str(error))))
    else:
        done.append(3.0)
    return np.array(done)


def out_of_nested_loops(a, i):
    n, last = 0, 0.0
    try:
        for k in i:
            for v in a[0]:
                n += 1
                last = v * k
                if last < 0:
                    raise StopIteration
                if n > 9:
                    break
        else:
            n += 100
    except StopIteration:
        n += 1000
    return np.array([n, last])


def in_each_iteration(a, i):
    n, left = 0, a[0, 0] + 3
    for k in i:
        try:
            n += 1
            if k < 0:
                raise ValueError
            if k > left:
                raise KeyError("more than there is")
            left -= k
        except ValueError:
            n += 10
        except KeyError:
            n += 100
            continue
        else:
            n += 1000
        finally:
            n += 10000
        n += 100000
    return np.array([n, left])


def before_what_may_fail(a, i):
    n = 0
    try:
        if i[0] > 5:
            raise ValueError("large")
        n += 1
        y = np.linalg.inv(a)
        n += 1
        if i[0] < 0:
            raise IndexError("small")
        n += int(a[i[1], 0])
    except (ValueError, LinAlgError):
        y, n = a + 1, n + 10
    except IndexError:
        y, n = a + 2, n + 20
    return y + n


class Short(Exception):
    def __init__(self, by):
        self.by = by


def told_by_the_exception(a, i):
    try:
        if i[0] < 0:
            raise Short(-i[0])
        return a[0, 0]
    except Short as error:
        return error.by + 0.5


def of_calls_in_a_branch(a, i):
    y = -2.0
    if i[0] >= 0:
        try:
            y = power(a[0, 0], i[0])
        except ValueError:
            y = -1.0
    return y


PROGRAMS = [
    value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__
]
for value in (helper, power, parsed, marked, Short):
    PROGRAMS.remove(value)
