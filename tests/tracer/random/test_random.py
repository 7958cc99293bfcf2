"""Keys, bits, uniform and normal numbers: published vectors, other implementations, all ways to run."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.ops.elementwise.random import threefry_words

interpreted = functools.partial(jt.jit, backend="interpreter")

# Random123's known answers for Threefry-2x32 with 20 rounds: key, counter, block.
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]

# What jax.random gives, with 64-bit types on: seed, key, split(key, 3), fold_in(key, 7), and bits.
STREAMS = [
    (0, [0, 0],
     [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]],
     [2716826189, 292468403], [[4070199207, 4202968722], [1427181096, 2012915765]],
     [7719171245655871230, 3989946895414531357], [167, 146, 40], [20391, 13970]),
    (42, [0, 42],
     [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]],
     [2547012911, 1371500959], [[2098992034, 2919706841], [2646866425, 2409546199]],
     [7871734211187709741, 276886910877598708], [162, 217, 249], [5026, 12505]),
    (2**40 + 7, [256, 7],
     [[2775665504, 110793307], [1038896816, 4099356745], [980683688, 2277133135]],
     [2184174600, 1935394093], [[2750142779, 3384506105], [3184410855, 2030317087]],
     [11921392564426150491, 4462027852737886281], [59, 249, 231], [55611, 30457]),
    (-1, [4294967295, 4294967295],
     [[1094285764, 1314454335], [1355514454, 2365093262], [399813750, 1719144391]],
     [921105589, 916768269], [[258048763, 3694393304], [1907139505, 1506496363]],
     [4699921570172828479, 5821890251550389646], [251, 216, 177], [33531, 63448]),
]  # fmt: skip
UNIFORM = {
    "f4": [0.48870956897735596, 0.6797971725463867, 0.6162714958190918, 0.5610160827636719],
    "f8": [0.4267275666499091, 0.015010069515314584, 0.5741444178995352, 0.7298188969046309],
}
HALF = {
    "f2": [0.076171875, 0.1904296875, 0.9755859375, 0.7568359375],
    "bf2": [0.6328125, 0.84375, 0.96875, 0.8359375],
}
NORMAL = {
    "f4": [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485],
    "f8": [-0.18471174528191162, -2.169824560397754, 0.18693555179382582, 0.6122653570510959],
}


@pytest.mark.parametrize(("key", "counter", "block"), KNOWN_ANSWERS)
def test_published_vectors(key, counter, block):
    words = threefry_words(*(np.uint32(w) for w in (*key, *counter)))
    assert tuple(int(w) for w in words) == block


@pytest.mark.parametrize(("key", "counter", "block"), KNOWN_ANSWERS)
def test_published_vectors_in_compiled_code(key, counter, block):
    """`fold_in` is the block of a counter whose upper word is 0; bits count up from 0."""
    if counter[0] == 0:
        folded = jt.random.fold_in(np.array(key, np.uint32), np.uint32(counter[1]))
        assert folded.tolist() == list(block)
    first = jt.random.bits(np.array(key, np.uint32), (1,), np.uint64)
    want = threefry_words(*(np.uint32(w) for w in (*key, 0, 0)))
    assert int(first[0]) == int(want[0]) << 32 | int(want[1])


@pytest.mark.parametrize("seed", STREAMS, ids=lambda s: str(s[0]))
def test_keys_and_bits_are_those_of_jax(seed):
    number, key, rows, folded, b32, b64, b8, b16 = seed
    k = jt.random.key(number)
    assert type(k) is np.ndarray and k.dtype == np.uint32 and k.tolist() == key
    assert jt.random.split(k, 3).tolist() == rows
    assert jt.random.split(k).tolist() == rows[:2]
    assert jt.random.fold_in(k, 7).tolist() == folded
    assert jt.random.bits(k, (2, 2), np.uint32).tolist() == b32
    assert jt.random.bits(k, 2).tolist() == b64
    assert jt.random.bits(k, (3,), np.uint8).tolist() == b8
    assert jt.random.bits(k, (2,), np.uint16).tolist() == b16


def reference_bits(key, places, width):
    """Bits of elements in NumPy, by the definition."""
    places = np.asarray(places, np.uint64)
    high, low = ((places >> np.uint64(s)).astype(np.uint32) for s in (32, 0))
    k0, k1 = (np.full(places.shape, w, np.uint32) for w in key)
    first, second = threefry_words(k0, k1, high, low)
    if width == 64:
        return first.astype(np.uint64) << np.uint64(32) | second
    return (first ^ second).astype(f"u{width // 8}")


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**64 - 1),
    shape=st.lists(st.integers(0, 5), max_size=4).map(tuple),
    width=st.sampled_from([8, 16, 32, 64]),
)
def test_bits_are_blocks_of_the_position(seed, shape, width):
    key = jt.random.key(seed)
    got = jt.random.bits(key, shape, f"u{width // 8}")
    want = reference_bits(key, np.arange(np.prod(shape, dtype=int)), width)
    np.testing.assert_array_equal(got, want.reshape(shape))


def test_positions_beyond_32_bits():
    """Nobody has to make the eight billion before them."""
    key = jt.random.key(1)
    last = jt.jit(lambda k: jt.random.bits(k, (2**33 + 3,), np.uint64)[-3:])(key)
    np.testing.assert_array_equal(last, reference_bits(key, 2**33 + np.arange(3), 64))
    row = jt.jit(lambda k: jt.random.bits(k, (2**20, 2**14), np.uint32)[2**19 + 7, 5:9])(key)
    np.testing.assert_array_equal(
        row, reference_bits(key, (2**19 + 7) * 2**14 + np.arange(5, 9), 32)
    )


def test_split_to_a_shape():
    rows = jt.random.split(jt.random.key(42), (2, 2))
    assert rows.shape == (2, 2, 2) and rows[1, 1].tolist() == [3134548294, 894150801]
    np.testing.assert_array_equal(rows.reshape(4, 2), jt.random.split(jt.random.key(42), 4))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_uniform_and_normal_numbers_are_those_of_jax(dtype):
    key = jt.random.key(42)
    u, z = jt.random.uniform(key, (4,), dtype), jt.random.normal(key, (4,), dtype)
    assert u.tolist() == UNIFORM[dtype] and u.dtype == dtype
    np.testing.assert_allclose(z, NORMAL[dtype], rtol=8 * np.finfo(dtype).eps)


def test_numbers_of_16_bits():
    """Uniform ones are jax.random's, and less than 1; normal ones are those of float32, rounded."""
    key = jt.random.key(42)
    u = jt.random.uniform(key, (4,), np.float16)
    assert u.tolist() == HALF["f2"] and u.dtype == np.float16
    b = jt.random.uniform(key, (4,), jt.bfloat16)
    assert b.astype(np.float64).tolist() == HALF["bf2"] and b.dtype == jt.bfloat16
    for dtype in (np.float16, jt.bfloat16):
        many = jt.random.uniform(key, (100_000,), dtype).astype(np.float64)
        assert many.max() < 1 and abs(many.mean() - 0.5) < 0.01
        z = jt.jit(lambda k, dtype=dtype: jt.random.normal(k, (1000,), dtype))(key)
        np.testing.assert_array_equal(z, jt.random.normal(key, (1000,), np.float32).astype(dtype))
        assert jt.random.gamma(key, 2.0, dtype=dtype).dtype == dtype


def programs():
    return {
        "bits": lambda k: jt.random.bits(k, (5, 7), np.uint32),
        "bits 64": lambda k: jt.random.bits(k, 3),
        "uniform": lambda k: jt.random.uniform(k, (3, 4), np.float32),
        "interval": lambda k: jt.random.uniform(k, None, None, np.zeros(3), [1.0, 2.0, 3.0]),
        "normal": lambda k: jt.random.normal(k, (17,)),
        "scaled": lambda k: jt.random.normal(k, (2, 3), None, np.ones(3, np.float32), 2.0),
        "scalar": lambda k: jt.random.normal(k),
        "split": lambda k: jt.random.split(k, 4),
        "fold_in": lambda k: jt.random.fold_in(k, np.int8(-3)),
        "none": lambda k: jt.random.uniform(k, (0, 3)),
    }


@pytest.mark.parametrize("name", programs())
def test_every_way_to_run_gives_the_same(name):
    """Eagerly and in compiled code to the last bit; the interpreter has NumPy's logarithms."""
    f = programs()[name]
    key = jt.random.key(3)
    eager, native, law = f(key), jt.jit(f)(key), interpreted(f)(key)
    assert np.shape(eager) == np.shape(native) and eager.dtype == native.dtype == law.dtype
    np.testing.assert_array_equal(eager, native)
    np.testing.assert_allclose(native, law, rtol=1e-6 if native.dtype == np.float32 else 1e-14)
    assert jt.jit(f)(jt.random.key(4)).tolist() != native.tolist() or native.size == 0


def test_a_batch_of_keys_gives_the_stream_of_each():
    keys = jt.random.split(jt.random.key(0), 5)
    for f in (jt.vmap(lambda k: jt.random.normal(k, (3,))), jt.vmap(jt.random.normal)):
        each = [jt.random.normal(k, f(keys).shape[1:]) for k in keys]
        for batch in (f(keys), jt.jit(f)(keys)):
            np.testing.assert_allclose(batch, each, rtol=1e-14)


def test_elements_do_not_depend_on_threads_or_on_the_shape_of_the_rest():
    key = jt.random.key(9)
    f = jt.jit(lambda k: jt.random.normal(k, (300_001,), np.float32))
    with jt.threads(1):
        one = f(key)
    np.testing.assert_array_equal(one, f(key))
    np.testing.assert_array_equal(one[:1000], jt.random.normal(key, (1000,), np.float32))
    np.testing.assert_array_equal(one[:600], jt.random.normal(key, (20, 30), np.float32).ravel())


def test_random_numbers_are_made_where_they_are_used():
    """One kernel, and no memory for ten million numbers."""
    f = jt.jit(lambda k: np.exp(jt.random.normal(k, (10_000_000,), np.float32)).mean())
    key = jt.random.key(0)
    assert f.lower(key).executable.module.arena_bytes < 2**20
    assert abs(f(key) - np.exp(0.5)) < 4e-3


def test_bits_are_rotated_by_one_instruction_in_vectors():
    text = jt.jit(lambda k: jt.random.bits(k, (4096,), np.uint32)).lower(jt.random.key(0)).asm()
    if "zmm" in text:
        assert "vprold" in text


def test_integers_have_no_derivative_and_keys_stay_out_of_the_way():
    key = jt.random.key(1)

    def loss(mu, key):
        return (jt.random.normal(key, (50,), None, mu, 2.0) ** 2).mean()

    x = jt.random.normal(key, (50,), None, 0.5, 2.0)
    for g in (jt.grad(loss), jt.jit(jt.grad(loss))):
        np.testing.assert_allclose(g(0.5, key), 2 * x.mean(), rtol=1e-12)


def test_complex_normal_numbers_are_those_of_jax():
    k = jt.random.key(42)
    z = jt.random.normal(k, (2,), np.complex64)
    np.testing.assert_allclose(z, [0.05368746 + 0.42833984j, -0.34389618 + 0.5650095j], rtol=1e-6)
    assert z.dtype == np.complex64
    one = jt.random.normal(k, (), np.complex128)
    np.testing.assert_allclose(one, -0.5093295292642132 + 0.45954304860759587j, rtol=1e-14)
    many = jt.random.normal(k, (100_000,), np.complex128, 1 + 2j, 3.0)
    assert abs(many.mean() - (1 + 2j)) < 0.04 and abs(many.var() - 9) < 0.15
    assert abs(((many - many.mean()) ** 2).mean()) < 0.15  # the parts are independent


def test_names_of_jax_for_keys():
    k = jt.random.PRNGKey(42)
    np.testing.assert_array_equal(k, jt.random.key(42, impl="threefry2x32"))
    for same in (jt.random.key_data(k), jt.random.wrap_key_data(k), jt.random.clone(k)):
        np.testing.assert_array_equal(same, k)
    assert jt.random.key_impl(k) == "threefry2x32" and jt.random.clone(k) is not k
    for wrong in (
        lambda: jt.random.key(0, impl="rbg"),
        lambda: jt.random.wrap_key_data(k, impl="rbg"),
    ):
        with pytest.raises(ValueError, match="threefry2x32"):
            wrong()
    with pytest.raises(TypeError, match="key"):
        jt.random.key_data(np.zeros(2))


def test_what_is_no_key_is_refused():
    for bad in (0, np.zeros(2), np.zeros(3, np.uint32), [1, 2]):
        with pytest.raises(TypeError, match=r"jt\.random\.key\(seed\)"):
            jt.random.normal(bad)
    with pytest.raises(TypeError, match="jt.vmap"):
        jt.jit(lambda k: jt.random.uniform(k, (3,)))(jt.random.split(jt.random.key(0)))
    with pytest.raises(TypeError, match="integer"):
        jt.random.key(1.5)
    with pytest.raises(TypeError, match="integer"):
        jt.random.fold_in(jt.random.key(0), 0.5)
    with pytest.raises(TypeError, match="unsigned"):
        jt.random.bits(jt.random.key(0), 3, np.int32)
    with pytest.raises(ValueError, match="broadcast"):
        jt.random.normal(jt.random.key(0), (4,), None, np.zeros(3))
    with pytest.raises(TypeError, match="integers gives integers"):
        jt.random.normal(jt.random.key(0), (4,), np.int32)


def test_the_errors_function_and_its_inverse():
    x = np.linspace(-0.999, 0.999, 1001)
    np.testing.assert_allclose(jt.erf(jt.erfinv(x)), x, atol=1e-15)
    np.testing.assert_allclose(jt.jit(jt.erfinv)(x), jt.erfinv(x), rtol=1e-15)
    assert jt.erfinv(np.float32(0.5)).dtype == np.float32 and jt.erfinv(1) == np.inf
    jt.check_grads(jt.erfinv, (x[::50],))
