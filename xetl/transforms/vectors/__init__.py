"""Between MLIR's `vector` dialect and tiles.

`reading` and `contracting` serve `convert-vector-to-xetile`. `convert-xetile-to-vector`
asks `signs` and `families` which tiles it can say, and `moving` (where a tile starts),
`accessing` and `computing` say it.
"""
