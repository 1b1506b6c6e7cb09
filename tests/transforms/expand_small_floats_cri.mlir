// RUN: xetl-opt %s -p "expand-small-floats{device=cri}" | filecheck %s

// The matrix unit multiplies codes: nothing is converted.
// CHECK-LABEL: @product
// CHECK-NEXT:  %d = xetile.tile_mma %a, %b {precision = "e4m3xe5m2"} : vector<8x32xi8>, vector<32x16xi8> -> vector<8x16xf32>
func.func @product(%a: vector<8x32xf8E4M3FN>, %b: vector<32x16xf8E5M2>) -> vector<8x16xf32> {
  %d = xetile.tile_mma %a, %b : vector<8x32xf8E4M3FN>, vector<32x16xf8E5M2> -> vector<8x16xf32>
  func.return %d : vector<8x16xf32>
}

// Half a step of it takes f16.
// CHECK-LABEL: @short
// CHECK:       xetile.tile_mma %{{.*}}, %{{.*}} : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf32>
func.func @short(%a: vector<8x16xf8E4M3FN>, %b: vector<16x16xf8E5M2>) -> vector<8x16xf32> {
  %d = xetile.tile_mma %a, %b : vector<8x16xf8E4M3FN>, vector<16x16xf8E5M2> -> vector<8x16xf32>
  func.return %d : vector<8x16xf32>
}
