"""Run the cells of a tutorial one by one: `run_cells.py SCRIPT [OPTION] < CELLS`.

Input and output are JSON. The input is a list of pairs of a line number and a text. The
output is a list of what each cell printed, null for a cell that did not run because the
script had ended. The cells share one module and have the line numbers of the script, so
kernels find their source.
"""

import contextlib
import io
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType

SCRIPT = sys.argv[1]


def main() -> int:
    """Return exit code 1 if a cell failed, after naming the cell with its line."""
    given = json.load(sys.stdin)
    sys.argv = [SCRIPT, "--plot", *sys.argv[2:]]
    sys.path[0] = str(Path(SCRIPT).parent)
    module = sys.modules["__main__"] = ModuleType(
        "__main__"
    )  # torch.compile looks there
    module.__file__ = SCRIPT
    scope = module.__dict__
    printed: list[str | None] = []
    for number, (start, text) in enumerate(given):
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * start + text, SCRIPT, "exec"), scope)
        except SystemExit as error:
            if error.code:
                raise
            printed += [output.getvalue(), *[None] * (len(given) - number - 1)]
            break  # the tutorial needs what is not here, and has said so
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            line = next((f.lineno for f in frames if f.filename == SCRIPT), start)
            sys.stderr.write(f"cell {number}, line {line}: {error!r}\n")
            return 1
        printed.append(output.getvalue())
    json.dump(printed, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
