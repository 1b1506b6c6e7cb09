"""``python -m xetl`` is the command ``xetl``."""

import sys

from xetl.tools.cli import main

sys.exit(main())
