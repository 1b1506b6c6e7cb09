"""Random kernels of workgroups on the whole road to subgroups: each pass keeps them.

Maps, shapes, types and control flow are random, numbers are whole, so sums are exact in
any order; subgroups are checked for races and for barriers that some do not reach.
"""

import pytest
from meaning import same_meaning
from workgroup_kernels import kernel_of

from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass
from xetl.transforms.normalize_tiles import NormalizeTilesPass
from xetl.transforms.place_barriers import PlaceBarriersPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass

# Random maps do not fit together, and are told so.
pytestmark = pytest.mark.filterwarnings("ignore::xetl.errors.TileMapWarning")


def road(slm_limit: int):
    return [
        *(NormalizeTilesPass(), CanonicalizePass(), CSEPass(), PropagateWgMapsPass()),
        *(PlaceBarriersPass(), DistributeToSubgroupsPass(slm_limit)),
        *(CanonicalizePass(), CSEPass()),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_random_kernels(seed: int) -> None:
    kernel = kernel_of(seed)
    same_meaning(kernel.text, kernel.grid, kernel.arrays, road(65536))


@pytest.mark.parametrize("seed", range(100, 112))
def test_little_shared_memory(seed: int) -> None:
    """Exchanges go in chunks of 1 KiB, the least there is."""
    kernel = kernel_of(seed)
    same_meaning(kernel.text, kernel.grid, kernel.arrays, road(1))
