"""Every row of section 2 of language.md has a test that names it.

The tests stand in test_page_values, test_page_memory and test_page_python.
"""

import page
import test_page_memory
import test_page_python
import test_page_values

MODULES = (test_page_memory, test_page_python, test_page_values)


def test_every_line_is_proved():
    assert all(MODULES)
    assert not set(page.GROUPS) - page.PROVED
