"""Python that is not part of the kernel language: X04xx."""

from xetl import xetile
from xetl.xetile import f32


@xetile.function
def endless(v):
    return endless(v)  # ERROR(wrong_recursion): X0406 `endless` calls itself without end: calls are inlined


@xetile.function
def factorial(n):
    return 1 if n < 2 else n * halved(factorial(n - 1))  # ERROR(wrong_recursion_of_the_run): X0406 `factorial` calls itself without end: calls are inlined


@xetile.function
def halved(n):
    return n // 2


@xetile.function
def variadic(**values):
    return values["a"]


def wrong_recursion_of_the_run(X: "f32 1", n: "i64"):
    # CHECK: `factorial` calls `factorial`
    # CHECK: = help: end the recursion with a condition known when compiling, or write a loop
    X[0] = factorial(n)


def wrong_with(X: "f32 2"):
    with X:  # ERROR: X0402 `with` statements are not part of the kernel language
        pass


def wrong_try(X: "f32 2"):
    try:  # ERROR: X0402 `try` statements are not part of the kernel language
        pass
    except ValueError:
        pass


def wrong_match(X: "f32 2"):
    match 3:  # ERROR: X0402 `match` statements are not part of the kernel language
        case 3:
            pass


def wrong_raise(X: "f32 2"):
    raise ValueError  # ERROR: X0402 `raise` statements are not part of the kernel language


def wrong_import(X: "f32 2"):
    import math  # ERROR: X0402 `import` statements are not part of the kernel language


def wrong_comprehension(X: "f32 2"):
    # CARET: [i for i in range(3)]
    # CHECK: write a `for` loop over xetile.static_range: `items = [*items, one]`
    v = [i for i in range(3)]  # ERROR: X0402 list comprehensions are not part of the kernel language


def wrong_generator(X: "f32 2"):
    v = sum(i for i in range(3))  # ERROR: X0402 generator expressions are not part of the kernel language


def wrong_dict(X: "f32 2"):
    v = {"a": 1}  # ERROR: X0402 dicts are not part of the kernel language


def wrong_star(X: "f32 2"):
    v = xetile.init_tile(X, *X)  # ERROR: X0402 `*` of what is no tuple


def wrong_double_star(X: "f32 2"):
    v = xetile.init_tile(X, [0, 0], **{})  # ERROR: X0402 `**` arguments are not part of the kernel language


def wrong_variadic(X: "f32 2"):
    v = variadic(a=2)  # ERROR: X0402 `**values` parameters are not part of the kernel language


def wrong_loop_else(X: "f32 2"):
    for i in range(4):
        pass
    else:
        v = 3  # ERROR: X0402 `else` of a loop is not part of the kernel language
    # CHECK: = help: put the statements behind the loop; where it has a `break`, under an `if` on a name set before it


def wrong_class(X: "f32 2"):
    class Inner:  # ERROR: X0402 `class` statements are not part of the kernel language
        pass


def wrong_global(X: "f32 2"):
    global counter  # ERROR: X0402 `global` statements are not part of the kernel language


def wrong_delete(X: "f32 2"):
    v = 3
    del v  # ERROR: X0402 `del` statements are not part of the kernel language


def wrong_element_assignment(X: "f32 2"):
    v = xetile.zeros((4,))
    # CARET: v[0]
    # CHECK: = help: write memory with xetile.store_tile(value, tile)
    v[0] = 3.0  # ERROR: X0404 only names and elements of arrays can be assigned to in a kernel


def wrong_slice_assignment(X: "f32 2", Y: "f32 1"):
    # CARET: Y[0:4]
    # CHECK: = help: write memory with xetile.store_tile(value, tile), the tile from xetile.init_tile(Y, offsets, shape)
    Y[0:4] = X[0]  # ERROR: X0404 a slice of an array cannot be assigned to in a kernel


def wrong_item_assignment(X: "f32 1"):
    sums = [0.0, 0.0]
    # CARET: sums[1]
    # CHECK: = help: make a new list: `sums = [*sums[:i], new, *sums[i + 1 :]]`
    sums[1] = 2.0  # ERROR: X0404 the items of `sums` cannot be assigned to in a kernel


def wrong_append(X: "f32 1"):
    sums = []
    # CHECK: = help: make a new list: `sums = [*sums, new]`
    sums.append(X[0])  # ERROR: X0102 `sums` has no attribute `append`


def wrong_attribute_assignment(X: "f32 2"):
    X.size += 3.0  # ERROR: X0404 only names and elements of arrays can be assigned to in a kernel


def wrong_element_of_too_few_indices(X: "f32 2"):
    # CHECK: = help: a number goes to one element; a tile takes xetile.store_tile
    X[0] = 3.0  # ERROR: X0206 `X` has rank 2, but 1 indices are given


def wrong_element_kind(X: "i32 2"):
    # CARET: 3.5
    # CHECK: = help: round it first: `int(...)`
    X[0, 0] = 3.5  # ERROR: X0311 a float does not fit into an element of i32


def wrong_element_vector(X: "f32 2"):
    X[0, 0] = xetile.zeros((4,))  # ERROR: X0303 an element must be a number, not f32 (4,)


def wrong_elements_shape(X: "f32 1"):
    # CHECK: = help: the shapes must be equal: use xetile.tile_broadcast
    X[xetile.arange(8)] = xetile.zeros((4,))  # ERROR: X0208 (4,) values cannot be stored at (8,) indices


def wrong_elements_dtype(X: "f32 1"):
    # CHECK: = help: convert the value: `.to(xetile.f32)`
    X[xetile.arange(8)] = xetile.arange(8)  # ERROR: X0311 i32 cannot be stored in an array of f32


def wrong_rows_alone(X: "f32 2"):
    # CHECK: = help: vectors of indices choose elements: give one for each dim
    X[xetile.arange(8)]  # ERROR: X0206 `X` has rank 2, but 1 index is given


def wrong_index_shapes(X: "f32 2"):
    X[xetile.arange(8), xetile.arange(4)]  # ERROR: X0202 `indices` cannot broadcast (8,) with (4,)


def wrong_index_kind(X: "f32 2"):
    X[xetile.arange(8), 1.5]  # ERROR: X0305 indices must be integers, not the constant 1.5


def wrong_recursion(X: "f32 2"):
    v = endless(1.0)


def wrong_vector_index(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    w = v[4]  # ERROR: X0407 a vector cannot be indexed with `[4]`


def wrong_vector_indices(X: "f32 2"):
    v = xetile.arange(4)
    w = v[1, 2]  # ERROR: X0407 a vector cannot be indexed with `[1, 2]`


def wrong_vector_of_indices(X: "f32 2"):
    v = xetile.arange(4)
    # CHECK: ; reverse with xetile.flip, choose by a vector with xetile.gather
    w = v[v > 2]  # ERROR: X0407 a vector cannot be indexed with `[v > 2]`


def wrong_vector_step(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: ; reverse with xetile.flip, choose by a vector with xetile.gather
    w = v[::-1]  # ERROR: X0407 a vector cannot be indexed with `[::-1]`


def wrong_yield(X: "f32 2"):
    def inner():
        # CHECK: return all values as a tuple
        yield X  # ERROR: X0402 `yield` is not part of the kernel language

    v = inner()


def wrong_async(X: "f32 2"):
    # CHECK: write `def`
    async def inner():  # ERROR: X0402 `async` functions are not part of the kernel language
        return X


def wrong_bytes(X: "f32 2"):
    # CHECK: write an int, a float or a text
    v = b"x"  # ERROR: X0402 bytes constants are not part of the kernel language
