// error: X0701 3:95 `warm` is no cache hint
func.func @f(%t: !xetile.tile<8x16xf32>) {
  xetile.prefetch_tile %t {l1_hint = #xetile.cache_hint<cached>, l2_hint = #xetile.cache_hint<warm>} : !xetile.tile<8x16xf32>
  return
}
