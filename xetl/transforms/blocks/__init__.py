"""How `choose-inner-blocks` decides (docs/design/0004).

In order: `axes` (which extents are cut alike), `forms` (which operations work in
blocks), `demands` (what each operation asks for), `choice` (what a value gets), `tiles`
(what a tile gets), `plan` (all of it for one kernel), `rewrite` (carrying it out),
`legality` (the stage `xetile-blocked`).
"""
