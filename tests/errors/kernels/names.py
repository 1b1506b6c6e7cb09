"""Names, attributes, keywords and arguments that are not there: X01xx."""

import math

import numpy as np

from xetl import xetile
from xetl.xetile import constexpr, f32

TABLE = np.zeros(4)


def plain_helper(v):
    return v + 1


@xetile.function
def scale(v, by):
    return v * by


@xetile.function
def outer_helper(v):
    return inner_helper(v)


@xetile.function
def inner_helper(v):
    return v * facter  # ERROR(wrong_inside_helpers): X0101 `facter` is not defined


def wrong_misspelt_variable(X: "f32 2"):
    accumulator = xetile.zeros((4, 4), f32)
    # CARET: acumulator
    # CHECK: = help: did you mean `accumulator`?
    y = acumulator + 1  # ERROR: X0101 `acumulator` is not defined


def wrong_unknown_variable(X: "f32 2"):
    y = zzqqxx  # ERROR: X0101 `zzqqxx` is not defined


def wrong_bare_operation(X: "f32 2"):
    # CHECK: = help: write `xetile.load_tile`
    y = load_tile(X)  # ERROR: X0101 `load_tile` is not defined


def wrong_misspelt_operation(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    # CARET: xetile.lod_tile
    # CHECK: = help: did you mean `load_tile`?
    v = xetile.lod_tile(t)  # ERROR: X0102 `xetile` has no attribute `lod_tile`


def wrong_array_attribute(X: "f32 2"):
    # CHECK: = help: did you mean `shape`?
    n = X.shap[0]  # ERROR: X0102 `X`, an array of f32, rank 2, has no attribute `shap`


def wrong_method_of_an_array(X: "f32 1"):
    # CHECK: = help: load a tile of it first: xetile.load_tile(xetile.init_tile(X, ...))
    s = X.sum()  # ERROR: X0102 `X`, an array of f32, rank 1, has no attribute `sum`


def wrong_size_of_an_array(X: "f32 2"):
    # CHECK: = help: multiply the sizes: `X.shape[0]`, ...
    s = X.size  # ERROR: X0102 `X`, an array of f32, rank 2, has no attribute `size`


def wrong_fill_of_an_array(X: "f32 2"):
    # CHECK: = help: write `xetile.store_tile(0, tile)`
    X.fill(0)  # ERROR: X0102 `X`, an array of f32, rank 2, has no attribute `fill`


def wrong_copy_of_a_vector(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: = help: leave it out: a vector never changes
    w = v.clone()  # ERROR: X0102 `v`, f32 (4, 4), has no attribute `clone`


def wrong_vector_attribute(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: = help: convert with `.to(dtype)`
    w = v.astype(f32)  # ERROR: X0102 `v`, f32 (4, 4), has no attribute `astype`


def wrong_method_of_a_tile(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    # CHECK: = help: load the tile first: xetile.load_tile(...)
    s = t.sum(0)  # ERROR: X0102 `t`, a tile of f32 (4, 4), has no attribute `sum`


def wrong_plain_helper(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CARET: plain_helper
    # CHECK: = help: decorate it with `@xetile.function`
    w = plain_helper(v)  # ERROR: X0103 `plain_helper` is a plain Python function


def wrong_plain_helper_as_argument(X: "f32 2", F: constexpr = plain_helper):
    v = F(1.0)  # ERROR: X0103 `plain_helper` is a plain Python function


def wrong_keyword(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    # CARET: pading=0
    # CHECK: = help: did you mean `padding`?
    v = xetile.load_tile(t, pading=0)  # ERROR: X0104 `load_tile` has no parameter `pading`


def wrong_keyword_of_helper(X: "f32 2"):
    # CHECK: = help: its parameters are v, by
    v = scale(1.0, factor=3)  # ERROR: X0104 `scale` has no parameter `factor`


def wrong_too_many_arguments(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    # CARET: 3
    v = xetile.load_tile(t, 3)  # ERROR: X0105 `load_tile` takes 1 positional argument, but 2 are given


def wrong_too_many_arguments_of_a_builtin(X: "f32 2"):
    v = len(X, 0)  # ERROR: X0105 `len` takes 1 argument, not 2


def wrong_missing_argument(X: "f32 2"):
    # CHECK: = help: its parameters are v, by
    v = scale(1.0)  # ERROR: X0105 `scale` misses its argument `by`


def wrong_argument_twice(X: "f32 2"):
    # CHECK: = help: its parameters are v, by
    v = scale(1.0, 2.0, by=3)  # ERROR: X0105 `scale` is given `by` twice


def wrong_numpy_function(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CARET: np.exp
    # CHECK: = help: use xetile.exp
    w = np.exp(v)  # ERROR: X0106 `np.exp` is a function of the host


def wrong_math_function(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: = help: use xetile.sqrt
    w = math.sqrt(v)  # ERROR: X0106 `math.sqrt` is a function of the host


def wrong_print(X: "f32 2"):
    # CHECK: = help: load its elements: `X[i]`
    print(X)  # ERROR: X0303 a value of `print` must be a vector or a number, not an array of f32, rank 2


def wrong_print_keyword(X: "f32 2"):
    # CHECK: = help: write one text: print(f'...')
    print("a", end="")  # ERROR: X0104 `print` has no parameter `end` in a kernel


def wrong_kind_of_reduction(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CARET: "sum"
    w = xetile.tile_reduce("sum", v, [0])  # ERROR: X0107 `sum` is not a kind of `tile_reduce`


def wrong_kind_of_atomic(X: "f32 2"):
    # CHECK: = help: kinds are add, mul, max, min, and, or, xor, xchg
    # CARET: "plus"
    xetile.atomic_rmw_tile("plus", 1.0, xetile.init_tile(X, [0, 0], (4, 4)))  # ERROR: X0107 `plus` is not a kind of `atomic_rmw_tile`


def wrong_inside_helpers(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CARET: facter
    # CHECK: in inner_helper
    # CHECK: in outer_helper
    # CHECK: in wrong_inside_helpers
    # CHECK: called here
    w = outer_helper(v)


def wrong_behind_unicode(X: "f32 2"):
    π_factor, μ = 2.0, "é"
    # CARET: nowhere
    y = π_factor * ("ünï" == μ) * nowhere  # ERROR: X0101 `nowhere` is not defined


def wrong_array_of_the_host(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    w = v + TABLE  # ERROR: X0303 an operand of `+` must be a vector or a number, not a Python object of type ndarray


class Settings:
    size = 4

    @property
    def parts(self):
        return Settings()

    @property
    def clock(self):
        return next(TICKS)

    @property
    def broken(self):
        return {}["nothing"]

    def __bool__(self):
        return True


TICKS = iter(range(1000))
SETTINGS = Settings()
LOOKUP = {"a": 1}


def wrong_truth_of_an_object(X: "f32 2"):
    # CARET: SETTINGS
    # CHECK: what a Settings means here is known to its own code alone
    # CHECK: a change would not be noticed
    # CHECK: use its attributes or elements
    if SETTINGS:  # ERROR: X0108 `SETTINGS` cannot be read in a kernel
        v = xetile.zeros((4, 4), f32)


def wrong_equality_of_an_object(X: "f32 2"):
    # CARET: LOOKUP
    if LOOKUP == 3:  # ERROR: X0108 `LOOKUP` cannot be read in a kernel
        v = xetile.zeros((4, 4), f32)


def wrong_object_in_a_tuple(X: "f32 2"):
    # CARET: (3, SETTINGS)
    if 3 in (3, SETTINGS):  # ERROR: X0108 `(3, SETTINGS)` cannot be read in a kernel
        v = xetile.zeros((4, 4), f32)


def wrong_object_looked_for(X: "f32 2"):
    # CARET: SETTINGS
    if SETTINGS in (3, 4):  # ERROR: X0108 `SETTINGS` cannot be read in a kernel
        v = xetile.zeros((4, 4), f32)


def wrong_object_as_text(X: "f32 2"):
    # CARET: SETTINGS
    xetile.device_print(f"{SETTINGS}")  # ERROR: X0108 `SETTINGS` cannot be read


def wrong_object_given_to_str(X: "f32 2"):
    # CARET: LOOKUP
    xetile.device_print(str(LOOKUP))  # ERROR: X0108 `LOOKUP` cannot be read


def wrong_object_given_to_math(X: "f32 2"):
    # CARET: SETTINGS
    x = math.sqrt(SETTINGS)  # ERROR: X0108 `SETTINGS` cannot be read


def wrong_object_asserted(X: "f32 2"):
    # CARET: SETTINGS
    xetile.static_assert(SETTINGS)  # ERROR: X0108 `SETTINGS` cannot be read


def wrong_object_made_at_each_look(X: "f32 2"):
    # CARET: SETTINGS.parts.size
    # CHECK: this object of type Settings is made at each look
    n = SETTINGS.parts.size  # ERROR: X0108 `SETTINGS.parts.size` cannot be read


def wrong_value_that_never_rests(X: "f32 2"):
    # CARET: SETTINGS.clock
    # CHECK: `SETTINGS.clock` is another value each time
    n = SETTINGS.clock  # ERROR: X0108 `SETTINGS.clock` cannot be read


def wrong_property_that_fails(X: "f32 2"):
    # CARET: SETTINGS.broken
    n = SETTINGS.broken  # ERROR: X0307 reading `SETTINGS.broken` failed: 'nothing'


class Elements:
    def __getitem__(self, index):
        raise RuntimeError("closed")


ELEMENTS = Elements()


def wrong_element_that_fails(X: "f32 2"):
    # CARET: ELEMENTS[0]
    n = ELEMENTS[0]  # ERROR: X0307 reading `ELEMENTS[0]` failed: closed
