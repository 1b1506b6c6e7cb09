import pytest

from xetl.settings import config


@pytest.fixture(autouse=True)
def compile_anew():
    """The disk cache does not know of changes of the front end itself."""
    config.cache = False
    yield
    del config.cache
