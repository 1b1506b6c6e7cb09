from . import binding as binding
from . import ir as ir
