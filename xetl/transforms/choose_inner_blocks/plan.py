"""All decisions about one function, before anything is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from xetl.analysis.axes import Axis, Classes, arguments_of, is_matrix, shape_of
from xetl.devices import Block, Device
from xetl.dialects.xetile import AtomicRmwTileOp, LoadTileOp, StoreTileOp, TileMmaOp
from xetl.records import record
from xetl.transforms.choose_inner_blocks.block_constraints import (
    CARRYING,
    Chosen,
    Demand,
    Form,
    Product,
    demands_of,
    form_of,
    limits_of,
    plain,
    product_of,
    relations,
)
from xetl.transforms.choose_inner_blocks.tiles import TilePlan, plan_tiles


@record(frozen=True)
class Definition:
    """A matrix, and the blocks in which it comes into being."""

    value: SSAValue
    block: Block | None


@record()
class Plan:
    """What a function becomes.

    Attributes:
        function: that it is about.
        ops: all its operations.
        chosen: the blocks each value has for its readers.
        forms: the blocks in which each operation works.
        tiles: the blocks in which memory is accessed.
        unblocked: operations that should work in blocks and cannot, with the reason.
    """

    function: Operation
    ops: list[Operation]
    chosen: Chosen
    forms: dict[Operation, Form]
    tiles: TilePlan
    unblocked: dict[Operation, str]

    def definitions(self) -> list[Definition]:
        """All matrices of the function."""
        found = [
            Definition(value, block)
            for op in self.ops
            for value, block in zip(op.results, self.forms[op].results)
        ]
        for op in (self.function, *self.ops):
            carried = isinstance(op, CARRYING)
            for value in arguments_of(op):
                matrix = carried and is_matrix(value.type)
                found.append(Definition(value, self.chosen(value) if matrix else None))
        return [each for each in found if is_matrix(each.value.type)]


def make_plan(function: Operation, device: Device) -> Plan:
    """Decide for all values and tiles of a function."""
    ops = [op for region in function.regions for op in region.walk()]
    classes = Classes()
    for op in ops:
        for first, second in relations(op):
            classes.join(first, second)
    demands = [demand for op in ops for demand in demands_of(op, device)]
    limits = [limit for op in ops for limit in limits_of(op)]
    chosen = Choice(classes, demands, limits).block_of
    tiles = plan_tiles(ops, chosen, device)
    products = {
        op: product_of(op, device)
        for op in ops
        if isinstance(op, TileMmaOp) and is_matrix(op.a.type)
    }
    forms = {op: _form(op, chosen, tiles, products) for op in ops}
    reasons = {op: why for op, why in products.items() if isinstance(why, str)}
    return Plan(function, ops, chosen, forms, tiles, {**tiles.unblocked, **reasons})


def _form(
    op: Operation,
    chosen: Chosen,
    tiles: TilePlan,
    products: dict[TileMmaOp, Product | str],
) -> Form:
    if isinstance(op, TileMmaOp):
        product = products.get(op)
        if not isinstance(product, Product):
            return plain(op)
        operands = (product.a, product.b, product.c)[: len(op.operands)]
        return Form(operands, (product.c,))
    block = tiles.of_access.get(op)
    if isinstance(op, LoadTileOp):
        return Form((None,), (block,) * len(op.results))
    if isinstance(op, StoreTileOp):
        return Form((block, None), ())
    if isinstance(op, AtomicRmwTileOp):
        return Form((block, None, block)[: len(op.operands)], (block,))
    return form_of(op, chosen)


class Choice:
    """What each class of axes was given.

    A class takes the extent that the greatest weight of demands agrees on, the largest
    if several do.  A demand that cannot be met is packed for where it stands.

    Args:
        classes: of axes that are cut alike.
        demands: what operations ask for.
        limits: numbers that the extent of an axis's class must divide.
    """

    def __init__(
        self,
        classes: Classes,
        demands: Iterable[Demand],
        limits: Iterable[tuple[Axis, int]] = (),
    ) -> None:
        self._classes = classes
        votes: dict[Axis, Counter[int]] = {}
        for demand in demands:
            for dim, extents in enumerate((demand.rows, demand.columns)):
                counter = votes.setdefault(classes.find((demand.value, dim)), Counter())
                for extent in extents:
                    counter[extent] += demand.weight
        for axis, number in limits:
            counter = votes.get(classes.find(axis), Counter[int]())
            for extent in [each for each in counter if number % each]:
                del counter[extent]
        self._extents = {axis: _best(votes[axis]) for axis in votes if votes[axis]}

    def block_of(self, value: SSAValue) -> Block | None:
        """The blocks of a matrix; None where nobody asks for any."""
        rows, columns = (self._extent(value, dim) for dim in (0, 1))
        if rows is None or columns is None or max(shape_of(value)) == 1:
            return None
        return rows, columns

    def _extent(self, value: SSAValue, dim: int) -> int | None:
        if shape_of(value)[dim] == 1:
            return 1
        return self._extents.get(self._classes.find((value, dim)))


def _best(votes: Counter[int]) -> int:
    return max(votes, key=lambda extent: (votes[extent], extent))
