"""How `choose-inner-blocks` decides (docs/design/0004).

In order: `uniform` (constants have no opinion), `axes` (which extents are cut alike),
`slicing` and `forms` (which operations work in blocks), `demands` (what each operation
asks for), `choice` (what a value gets), `given` and `tiles` (what a tile gets), `plan`
(all of it for one kernel), `retile` and `rewrite` (carrying it out), `legality` (the
stage `xetile-blocked`).
"""
