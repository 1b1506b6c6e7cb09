"""Between MLIR's `vector` dialect and tiles.

`reading` and `contracting` serve `convert-vector-to-xetile`; `moving`, `accessing` and
`computing` serve `convert-xetile-to-vector`.
"""
