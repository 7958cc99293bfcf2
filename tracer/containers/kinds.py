"""Which containers are native, and what is in them: learned by tracing, again until it is settled.

    stack = []                  # a place where a container is made, a *site*
    while n > 0:
        stack.append(n % 10)    # grows in a compiled loop: `Again`, and the site makes native ones now

Containers of one site hold elements of one *form*: a number of one type, or a tuple of such, or another
container. The form is that of all elements that are seen. A number that is an int in some and a float in
others is a float, with a flag behind the record that says whether it is an int (`MIXED`); in keys
such ints are floats.
What is asked of a container of which no element has been seen yet is answered for an empty one, and the
function is traced again when the first one turns up.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn, TypeVar

from ...ir.ops.control import python_sets
from ...ir.record import record
from ..control.unions import Union, forms_of, numbering
from ..core.sharing import Again as Again
from ..core.sharing import Following, following
from ..core.trace import Trace, current_trace, require_trace
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .elements.forms import AnyKind, Form, form_of_keys
from .elements.varied import Unfit, has_bools_among_numbers, narrowed

T = TypeVar("T")
Site = Any  # code and a place in it; or which container of outside is meant
_TRIES = 40


@record
class Outside:
    """The site of a container that was there before the call: where in the heap it is found."""

    place: Any


@record
class Argument:
    """The site of a container among the arguments that was taken apart: which argument it is of."""

    place: int | str


@record(eq=False)
class Within:
    """The site of a container that a defaultdict made for a key: that of the defaultdict."""

    holder: Any


class Enters(errors.TraceAgain):
    """Containers of outside have to be native ones: those at these places in the heap."""

    def __init__(self, places: set[Any]) -> None:
        super().__init__(places)
        self.places = places


class Kind(AnyKind):
    """What the containers of one site are, or of several between which values are chosen.

    `cls` is the class that they have in Python, `made` what makes an empty one.
    """

    def __init__(self, cls: type, detail: Any = None) -> None:
        self.cls = cls
        self.detail = detail  # a deque's maxlen, a defaultdict's factory
        self._key: Form | None = None
        self._value: Form | None = None
        self._asked = False  # something was answered as for an empty one
        self._watched = False  # whether it changes is asked for
        self._changes = False  # whether something in the trace changes it
        self._same: Kind | None = None
        self._derived: dict[str, Kind] = {}
        # Of dicts that the function writes out: of which options the values of each text are, and those
        # that were asked for. None where keys are no known texts.
        self.by_text: dict[str, set[int]] | None = None
        self._texts_asked: set[str] = set()

    @property
    def root(self) -> Kind:
        kind = self
        while kind._same is not None:
            kind = kind._same
        return kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind) and self.root is other.root

    def __hash__(self) -> int:
        return hash(self.cls)

    def __repr__(self) -> str:
        return self.cls.__name__

    @property
    def key(self) -> Form | None:
        return self.root._key

    @property
    def value(self) -> Form | None:
        return self.root._value

    @property
    def is_known(self) -> bool:
        """Whether an element has been seen. If not, what is asked is answered as for an empty one."""
        root = self.root
        # Of a dict a key may have been seen, and its value found to be a list that is no native one.
        known = root._value is not None or (
            root._key is not None and not issubclass(root.cls, dict)
        )
        root._asked |= not known
        return known

    @property
    def is_watched(self) -> bool:
        """Whether loops run over the containers, which say then that they change."""
        return self.root._watched

    @property
    def changes(self) -> bool:
        """Whether traced code changes containers of this kind."""
        return self.root._changes

    def note_change(self) -> None:
        """Traced code changes one of the containers."""
        self.root._changes = True

    def watch(self) -> None:
        """A loop runs over one of the containers."""
        root = self.root
        if not root._watched:
            root._watched = True
            raise Again

    def can_be_one(self, other: Kind) -> bool:
        """Objects of two classes stay two forms."""
        kinds = current()
        return (
            kinds is None
            or self.cls is other.cls
            or not {self.cls, other.cls} & kinds.classes.keys()
        )

    def unite(self, other: Kind) -> None:
        """Make two kinds one."""
        a, b = self.root, other.root
        if a is b:
            return
        if a.cls is not b.cls or a.detail != b.detail:
            _refuse_two(a, b)
        b._same = a
        a._watched |= b._watched
        a._changes |= b._changes
        if a.by_text is None or b.by_text is None:
            a.by_text = None
        else:
            for text, numbers in b.by_text.items():
                a.by_text.setdefault(text, set()).update(numbers)
        for name, form in (("_key", b._key), ("_value", b._value)):
            if form is not None:
                a._take(name, form)
        raise Again

    def see(self, key: Any, value: Any) -> None:
        """Take in the forms of a key and a value that go into a container; NOTHING for none."""
        root, again = self.root, False
        if key is not NOTHING:
            again = root._take("_key", form_of(key, root, "key"))
        if value is not NOTHING:
            form = form_of(value, root, "value" if root._key else "element")
            again = root._take("_value", form) or again
        if again:
            root._asked = False
            raise Again

    def see_text(self, key: Any, numbers: set[int]) -> None:
        """The value of a key is of one of these options (`varied.numbers_in`)."""
        root = self.root
        if root.by_text is None:
            return
        if type(key) is not str:
            root.by_text = None
            again = bool(root._texts_asked)
        else:
            known = root.by_text.setdefault(key, set())
            again = key in root._texts_asked and not numbers <= known
            known |= numbers
        if again:
            raise Again

    def options_of(self, key: Any) -> set[int]:
        """The options of which the value of a key can be; none if that is not known."""
        root = self.root
        if root.by_text is None or type(key) is not str:
            return set()
        root._texts_asked.add(key)
        return root.by_text.get(key, set())

    def see_keys_of(self, other: Kind) -> None:
        """Take in the form of another kind's keys."""
        root, form = self.root, other.key
        if form is not None and root._take("_key", form):
            root._asked = False
            raise Again

    def see_forms_of(self, other: Kind) -> None:
        """Take in all that containers of another kind hold."""
        root, again = self.root, False
        for name, form in (("_key", other.key), ("_value", other.value)):
            if form is not None:
                again = root._take(name, form) or again
        if again:
            root._asked = False
            raise Again

    def _take(self, name: str, form: Form) -> bool:
        """Take in a form; tells whether what was traced before is wrong now."""
        form = form.unmixed() if name == "_key" else form
        old: Form | None = getattr(self, name)
        if old == form:
            return False
        new = form if old is None else old.joined(form, name == "_key")
        if name == "_key" and new is not None and has_bools_among_numbers(new.example):
            old, new = old or form, None
        if new is None:
            assert old is not None
            what = "keys" if name == "_key" else "values" if self._key else "elements"
            _refuse_forms(self, old, form, what)
        new = new.unmixed() if name == "_key" else new
        setattr(self, name, new)
        if old is not None and new.only_adds(old):
            later()  # what was read so far lacks the new texts
            return False
        return self._asked if old is None else new != old

    def derived(self, name: str, cls: type, detail: Any = None) -> Kind:
        """The kind of the containers that are made of those of this one in one way, as by `list(d)`."""
        return self.root._derived.setdefault(name, Kind(cls, detail))


NOTHING: Any = object()


def form_of(value: Any, kind: Kind, what: str) -> Form:
    """The form of what goes into a container of this kind, or an error."""
    value = narrowed(value)
    try:
        return Form.of(value)
    except Unfit:
        make_classes_native([value, *pytree.flatten(value)[0]])
        make_native(list(_pythons(value)))
        kinds = current()
        if kinds is not None:
            kinds.is_unfit = True
        complain(
            errors.CarryError,
            f"a {kind} that grows in a branch or loop that runs compiled holds numbers, tuples of them "
            f"and containers; this {what} is {errors.describe(value)}",
            "keep arrays in one array with a row for each, and put the row's number here.",
        )


def _refuse_forms(kind: Kind, old: Form, new: Form, what: str) -> NoReturn:
    complain(
        errors.CarryError,
        f"the {what} of a {kind} that grows in a branch or loop that runs compiled are of one type; "
        f"these are {old} and {new}",
        "convert them to one type, with int(...) or float(...), or keep them apart.",
    )


def _refuse_two(a: Kind, b: Kind) -> NoReturn:
    complain(
        errors.CarryError,
        f"a value is a {a} on one path and a {b} on another",
        "use one class of container.",
    )


def number_in_order(texts: list[list[str]]) -> None:
    """Let texts, which are here by their numbers, have these in the order of the alphabet: Again if they
    have not."""
    if any(some != sorted(some) for some in texts):
        kinds = _KINDS.get()
        assert kinds is not None
        kinds.renumber(text for some in texts for text in some)
        raise Again


def later() -> None:
    """The function is to be traced again, when this trace has come to its end."""
    kinds = _KINDS.get()
    assert kinds is not None
    kinds.is_stale = True


class Kinds:
    """What is known of the containers (and of arrays that may be one) of one traced function."""

    def __init__(self) -> None:
        self.sites: dict[Site, Kind] = {}  # native ones
        self.written: set[Site] = set()  # comprehensions that are to be written out
        self.classes: dict[type, Any] = {}  # those of users whose objects are native: `ClassKind`s
        self.local: dict[
            Any, type
        ] = {}  # classes that the function defines, by where and how often
        # Of Python's containers, by id, in this trace; of lists that are arrays, by their sites.
        self.births: dict[Any, Site] = {}
        self.loops: set[Any] = set()  # code of loops that are to be ops, see `autograph.runtime`
        self.lists: dict[
            Any, Kind
        ] = {}  # those that arrays of lists are made of, by line and number
        self.is_off = False  # the function could not be traced with native ones
        self.is_unfit = False  # because of an element
        self.texts: set[str] = set()  # those that are compared: their forms have the first numbers
        self.forms: list[Any] = []  # those of elements, by number, in all traces (`control.unions`)
        self.is_stale = False  # whether what was read in this trace may be more than was known
        self.arrays = Following()  # whether it is followed which arrays are one
        self.root: Any = None  # where those of this trace are kept
        self.entered: list[Any] = []  # native ones that were there before the call
        # Of lists that were arrays, and of containers of outside, what was in them: keys and values.
        self.numbers: list[tuple[Kind, Form | None, Form | None]] = []
        self.born: dict[int, Any] = {}  # objects of users' classes that Python has made, by id
        self.inner: set[int] = set()  # those that were made in branches or loops
        self.alive: list[Any] = []  # Python's containers, whose ids are not to be used again
        self.still: list[Any] = []  # NumPy's arrays that native ones hold, with copies
        # Kinds of arrays in containers of which arrays of this trace are made of; whether these have
        # numbers of their own.
        self.in_arrays: set[Any] = set()
        self.copies_rows = False

    def renumber(self, texts: Iterable[str]) -> None:
        """Let these texts be numbered in the order of the alphabet. What was learned goes by the numbers
        that there were."""
        self.texts.update(texts)
        self.forms[:] = forms_of(sorted(self.texts))
        self.sites = {site: Kind(kind.cls, kind.detail) for site, kind in self.sites.items()}
        self.classes = {cls: OBJECTS[0](cls) for cls in self.classes}
        self.lists = {}

    def kind_at(self, line: Any) -> Kind:
        """The kind of another list that is made at a line, the same in all traces."""
        number = self.made[line] = self.made.get(line, 0) + 1
        return self.lists.setdefault((line, number), Kind(list))

    def meet(self, cls: type, site: Site) -> None:
        """The function defines a class: the one that it defined here in the trace before, made anew."""
        times = self.met[site] = self.met.get(site, 0) + 1
        kind = self.classes.pop(self.local.get((site, times), cls), None)
        self.local[site, times] = cls
        if kind is not None:
            kind.cls = cls
            self.classes[cls] = kind

    def begin(self) -> None:
        """Another trace."""
        self.met: dict[Site, int] = {}  # how often classes were defined
        self.made: dict[Any, int] = {}
        self.births, self.root, self.numbers, self.alive = {}, None, [], []
        self.born, self.inner, self.entered = {}, set(), []
        self.is_stale = False
        self.in_arrays = set()


_KINDS: ContextVar[Kinds | None] = ContextVar("jitney_containers", default=None)


def current() -> Kinds | None:
    """What is known in the current trace, where containers can be native."""
    kinds = _KINDS.get()
    if kinds is None or kinds.is_off:
        return None
    trace = current_trace()
    return kinds if trace is not None and not root_of(trace).eager and not trace.eager else None


def root_of(trace: Trace) -> Trace:
    """The outermost trace around one."""
    while trace.parent is not None:
        trace = trace.parent
    return trace


@contextmanager
def _known(kinds: Kinds) -> Iterator[None]:
    reset = _KINDS.set(kinds)
    try:
        yield
    finally:
        _KINDS.reset(reset)


def settled(trace: Callable[[], T], kinds: Kinds) -> T:
    """`trace()`, called until it is known which containers are native and what they hold. If the
    function cannot be traced with native ones, it perhaps can without."""
    with _known(kinds), following(kinds.arrays):
        failure: Exception | None = None
        for _ in range(_TRIES):
            kinds.begin()
            try:
                with numbering(kinds.forms):
                    result = trace()
                if not kinds.is_stale:
                    return result
            except Again:
                continue
            except (errors.TraceAgain, RecursionError):  # that it calls itself is seen to elsewhere
                raise
            except Exception as error:
                if kinds.is_stale:
                    continue
                if not (kinds.sites or kinds.classes) or kinds.is_off or kinds.entered:
                    raise
                failure = error
                break
        kinds.begin()
        kinds.is_off = True
        try:
            return trace()
        except Exception as error:
            ours = isinstance(error, errors.JitneyError)
            if failure is None or kinds.is_unfit:
                raise
            told = isinstance(failure, errors.JitneyError) or hasattr(failure, errors.RAISED)
            if ours and not told:
                raise  # the other one is no more than what became of Python's own code
            raise failure from None


def make_native(containers: list[Any]) -> None:
    """Trace again with these containers of Python's as native ones, those of them that can be: Again if
    there is one."""
    kinds = current()
    if kinds is None:
        return
    found, outside = False, set[Any]()
    for container in containers:
        site = kinds.births.get(id(container))
        while isinstance(site, Within):
            container = site.holder
            site = kinds.births.get(id(container))
        is_pythons = type(container) in CLASSES
        if site is None and require_trace().lacks_heap and is_pythons and fits(container):
            raise errors.WantsHeap
        if site is None or site in kinds.sites or not fits(container):
            continue
        if isinstance(site, (Argument, Outside)) and not enters(container):
            continue
        if isinstance(site, Argument):
            raise errors.ChangedArgument(site.place)
        if isinstance(site, Outside):
            outside.add(site.place)
            continue
        kind = kinds.sites[site] = kind_of(container)
        kind.by_text = {} if type(container) is dict else None
        found = True
    if outside:
        raise Enters(outside)
    if found:
        raise Again


def changed(containers: list[Any]) -> None:
    """Containers of Python's, one of which grows or shrinks where it depends on traced values."""
    found = [inner for container in containers for inner in _with_inner(container)]
    if found:
        make_native(found)


def _with_inner(x: Any) -> Any:
    if type(x) in CLASSES or isinstance(x, (tuple, OrderedDict)):
        if type(x) in CLASSES:
            yield x
        for part in x.values() if isinstance(x, dict) else x:
            yield from _with_inner(part)


def note_made(holder: Any, container: Any) -> None:
    """What has been read of one of Python's containers, which perhaps was made by that."""
    kinds = current()
    if kinds is None or not isinstance(holder, defaultdict) or type(container) not in CLASSES:
        return
    if id(container) not in kinds.births:
        kinds.births[id(container)] = Within(holder)
        kinds.alive.append(container)


def is_outside(container: Any) -> bool:
    """Whether one of Python's containers was there before the call, and could be native."""
    kinds = current()
    site = None if kinds is None else kinds.births.get(id(container))
    return isinstance(site, (Outside, Argument))


def make_classes_native(objects: list[Any], inner: bool = False) -> None:
    """Trace again with the classes of these as native ones, those of them that Python made here, or made
    in a branch or loop (`inner`): Again if there is one."""
    kinds = current()
    if kinds is None or not kinds.born:
        return
    found = [x for x in objects if kinds.born.get(id(x)) is x]
    new = {type(x) for x in found if not inner or id(x) in kinds.inner} - kinds.classes.keys()
    if new:
        kinds.classes |= {cls: OBJECTS[0](cls) for cls in new}
        raise Again


OBJECTS: list[Any] = []  # what makes the kind of a class: `objects` lies above


def _pythons(value: Any) -> Iterator[Any]:
    """Python's containers in an element."""
    if isinstance(value, tuple):
        for part in value:
            yield from _pythons(part)
    elif type(value) is Union:
        for option in value.options.values():
            yield from _pythons(option)
    elif type(value) in CLASSES:
        yield value


def inherit(old: Any, new: Any) -> None:
    """A container that was made anew, as a variable of a loop, comes from the site of the old one."""
    kinds = current()
    if kinds is None or old is new or type(old) is not type(new):
        return
    if type(old) in CLASSES:
        site = kinds.births.get(id(old))
        if site is not None:
            kinds.births[id(new)] = site
    if isinstance(old, (list, tuple, deque)) and len(old) == len(new):
        for a, b in zip(old, new, strict=True):
            inherit(a, b)
    elif isinstance(old, dict) or hasattr(type(old), "__dataclass_fields__"):
        parts = [x if isinstance(x, dict) else getattr(x, "__dict__", {}) for x in (old, new)]
        for name in parts[0].keys() & parts[1].keys():
            inherit(parts[0][name], parts[1][name])


def fits(container: Any) -> bool:
    """Whether a native container can hold what is in it."""
    parts = [*container.items()] if isinstance(container, dict) else [*container]
    try:
        for part in parts:
            Form.of(tuple(part) if isinstance(container, dict) else part)
    except Unfit:
        factory = getattr(container, "default_factory", None)
        return all(_can_be(part, factory) for part in parts)
    return True


def enters(container: Any) -> bool:
    """Whether one that was there before the call can become native then: with numbers alone."""
    for part in (*container.items(),) if isinstance(container, dict) else container:
        try:
            form = Form.of(part)
        except Unfit:
            continue
        if form.is_varied or form.holds_arrays:
            return False
    return True


def _can_be(part: Any, factory: Any = None) -> bool:
    """Whether an element is a container that could be native, too: its site is known, or it is what the
    factory of a defaultdict makes."""
    kinds = current()
    if isinstance(part, tuple):
        return all(_can_be(inner, factory) for inner in part)
    if type(part) in CLASSES:
        known = kinds is not None and (id(part) in kinds.births or require_trace().lacks_heap)
        return (known or type(part) is factory) and fits(part)
    try:
        Form.of(part)
    except Unfit:
        is_data = hasattr(type(part), "__dataclass_fields__")
        return is_data and kinds is not None and kinds.born.get(id(part)) is part
    return True


def kind_of(container: Any) -> Kind:
    """The kind of containers like one of Python's."""
    detail = getattr(container, "maxlen", None) or getattr(container, "default_factory", None)
    return Kind(type(container), detail)


CLASSES: dict[type, Any] = {}
"""Of classes of Python's: what stands in for native ones. `stand_ins` fills it."""


def lies_as_in_python(kind: Kind) -> bool:
    """Whether sets of a kind have their keys where Python's have them, and this Python tells where."""
    return python_sets.layout() is not None and (
        kind.key is None or "?" not in form_of_keys(kind.key)
    )


def empty_maker(kind: Kind) -> Any:
    """What makes an empty one."""
    if hasattr(kind, "empty"):
        return kind.empty
    if kind.cls is deque:
        return partial(deque, (), kind.detail)
    if issubclass(kind.cls, dict) and kind.detail is not None:
        return partial(kind.cls, kind.detail)
    return kind.cls
