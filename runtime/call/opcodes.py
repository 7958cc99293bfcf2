"""The opcodes of call programs, and the words that each program begins with."""

from __future__ import annotations

HEADER = ("frame words", "first owned word", "owned words", "scratch word", "hits")
HITS = HEADER.index("hits")


class Opcode:
    """The opcodes, with their operands (src, dst, block, value: words of the frame)."""

    # Guards
    ARGUMENTS = 0  # count: positional arguments only, into the first words
    KEYWORDS = 1  # positional, keywords: as above, with so many keywords besides
    KEYWORD = 2  # dst, positional, searched, guess, name: at the guess, or among the first
    ARRAY = 3  # src, block, descr, ndim, flags, dims...
    STRIDED_ARRAY = 4  # src, block, descr, ndim, flags, dims..., strides...
    FLOAT = 5  # src, block, value: a Python float
    INT = 6
    BOOL = 7
    COMPLEX = 8
    GENERIC = 9  # src, block, value, type: a NumPy scalar
    IS = 10  # src, object
    IS_STRING = 11  # src, object
    IS_INT = 12  # src, integer
    IS_FLOAT = 13  # src, bits
    SAME = 14  # src, src: one object
    TYPE = 15  # src, type: exactly
    TUPLE = 16  # src, type, n, dst: the items into n words
    LIST = 17  # src, n, dst
    DICT = 18  # src, n, dst, keys...
    GLOBAL = 19  # owned, dict, key
    CELL = 20  # owned, cell
    ATTRIBUTE = 21  # owned, src, name
    ASK = 22  # owned, callable, n, src: call it with n words; raising counts as a mismatch
    CODE = 23  # src, code object: a function with this code
    # n, dst, (block, low, high, written + 2 * (1 + where the length is, `high` being for each))...: none
    # has a byte of one that is written
    APART = 24
    # Work
    HOLD = 25  # owned, src: keep a reference while others may run
    SCRATCH = 26  # block, dst, bytes, memory handler or 0, its functions
    SLOT = 27  # block, value: a result goes into the frame
    MEMORY = 28  # owned, dst, memory handler or 0: the current; one, its functions; their name
    EMPTY = 29  # owned, block, descr, ndim, dims...: an array without elements
    ALLOCATE = 30  # owned, block, handler, its functions, bytes, descr, ndim, dims...
    RUN = 31  # entry, block, status, release the GIL?, what to call with an error's status
    COPY = 32  # array, array: the elements of the second into the first
    # Results
    FLOAT_RESULT = 33  # owned, value
    INT_RESULT = 34
    BOOL_RESULT = 35
    COMPLEX_RESULT = 36
    GENERIC_RESULT = 37  # owned, value, descr
    ALIAS = 38  # owned, src
    CONSTANT = 39  # owned, object
    MAKE_TUPLE = 40  # owned, n, owned...
    MAKE_LIST = 41  # owned, n, owned...
    MAKE_DICT = 42  # owned, template, n, (key, owned)...
    CALL = 43  # owned, callable, n, src
    RETURN = 44  # owned
    # Guards that came later
    FOREIGN = 45  # src, block, value, type: a NumPy scalar of a dtype that is not NumPy's own
    ABSENT = 46  # dict, key: nothing is there
    UNCHANGED = 47  # address, version, n: if the version is there, go on n words from here
    SEEN = 48  # address, n: the version that is there is the second operand of what is n words back
    CLASS = 49  # address, version: of a class
    # src, code, defaults or 0, defaults by name or 0, where attributes are, these or 0
    FUNCTION = 50
    CODE_OF = 51  # function, code: it has this code
    METHOD = 52  # owned, src, name, function: what is bound there
    PICK = 53  # owned, value, n, otherwise, (integer, owned)...: what goes with the integer there
    # Changes, when all that can fail is over
    PUT_ATTRIBUTE = 54  # object, name, src
    PUT_ITEM = 55  # list, index, src
    PUT_KEY = 56  # dict, key, src
    PUT_CELL = 57  # cell, src
    # Lists of numbers
    PACK_FLOATS = 58  # src, data, n: a list of so many floats, their values where `data` points to
    PACK_INTS = 59
    PACK_BOOLS = 60
    UNPACK_FLOATS = 61  # src, data, n: the values there become the items of the list
    UNPACK_INTS = 62
    UNPACK_BOOLS = 63
    DIFFER = 64  # src, src: two objects
    PACK_GENERICS = 65  # src, data, n, type: of NumPy's scalars of 8 bytes
    UNPACK_GENERICS = 66  # src, data, n, descr
    TOLD = 67  # value: a bool there is false
    # Native containers: owned, function, n, kinds, words for n objects, for n handles, whether several
    # may hold one, (src, block)...
    ENTER = 68
    PACK_FLOAT_ROWS = 69  # src, data, n, columns: a list of so many lists of so many floats
    PACK_INT_ROWS = 70
    PACK_BOOL_ROWS = 71
    # src, block, descr, ndim, flags, where the length is, bind it?, least, most, dims behind...
    SIZED_ARRAY = 74
    # owned, block, handler, its functions, another for so many bytes and more, its functions, how many,
    # length, bytes of a row, words for dims, descr, ndim, dims...
    SIZED_ALLOCATE = 75
    FAR = 72  # function: the opcode that follows is run by this one, see `list_opcodes`
    # Native containers become Python's: owned (of the first of n), array of handles, function, n, kinds,
    # and whether behind the handles is one of what was there before the call
    LEAVE = 73
    ARE_STRINGS = 76  # src of the first of n, n, strings...
    WORD = 77  # address, word: it is there
