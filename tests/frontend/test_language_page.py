"""Every row of section 2 of docs/language.md has a test that names it.

The tests stand in the files test_page_*.
"""

import page
import test_page_dtypes
import test_page_memory
import test_page_python
import test_page_values

MODULES = (test_page_dtypes, test_page_memory, test_page_python, test_page_values)


def test_every_line_is_proved():
    assert all(MODULES)
    assert not set(page.GROUPS) - page.PROVED
