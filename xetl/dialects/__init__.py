"""The operations of every level, and their text.

`xetile` is our dialect; `upstream` holds our definitions of the stock operations
(xDSL's own differ from MLIR in places); `parser` reads text and keeps locations.
"""
