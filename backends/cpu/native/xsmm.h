/* The xsmm_* C functions that kernels call, whatever libxsmm serves them.
 *
 * Row-major here, column-major in libxsmm: its A is our B and its m is our n. Strides
 * between the matrices of a batch come in elements and go on in bytes. A dispatch that
 * libxsmm cannot serve returns 0; nothing here ends the process.
 *
 * Sources: seed 003 (names, arguments, numbers), libxsmm_typedefs.h.
 */
#ifndef XETL_XSMM_H
#define XETL_XSMM_H
#include <libxsmm.h>
#include <stdint.h>

/* BF16_F32 is ours: A and B are bf16, C is f32.  It is no number of libxsmm's. */
enum xetl_data_type { XETL_F32 = 1, XETL_BF16 = 2, XETL_BF16_F32 = 258 };

/* libxsmm's own numbers differ from version to version; these are seed 003's. */
enum xetl_gemm_flag {
    XETL_BETA_0 = 4,
    XETL_NO_RESET_TILECONFIG = 64,
    XETL_NO_SETUP_TILECONFIG = 128,
    XETL_VNNI_B = 2048
};

/* A product as it is asked for. */
struct xetl_brgemm {
    int64_t dtype, m, n, k, lda, ldb, ldc, stride_a, stride_b, flags;
};

/* The library this was built against: major * 1000 + minor. */
int64_t xetl_xsmm_version(void);

/* What libxsmm makes code for, such as "cpx". */
const char *xetl_xsmm_target(void);

int64_t xsmm_brgemm_dispatch(int64_t dtype, int64_t m, int64_t n, int64_t k,
                             int64_t lda, int64_t ldb, int64_t ldc,
                             int64_t stride_a, int64_t stride_b, int64_t flags);

/* C += the sum of `batch` products. */
void xsmm_brgemm_invoke(int64_t dtype, int64_t kernel,
                        const void *a, int64_t a_offset,
                        const void *b, int64_t b_offset,
                        void *c, int64_t c_offset, int64_t batch);

/* Only from libxsmm 2 on: AMX tiles apart from the products. */
int64_t xsmm_intel_amx_tile_config_dispatch(int64_t dtype, int64_t m, int64_t n,
                                            int64_t k, int64_t lda, int64_t ldb,
                                            int64_t ldc, int64_t stride_a,
                                            int64_t stride_b, int64_t flags);
void xsmm_intel_amx_tile_config_invoke(int64_t dtype, int64_t kernel, void *state,
                                       int64_t offset);

/* What both versions share (xsmm.c). */
int xetl_is_supported(const struct xetl_brgemm *asked, int64_t flags);
int64_t xetl_bytes_of_a(int64_t dtype);
int64_t xetl_bytes_of_c(int64_t dtype);

/* What each version has its own way of (xsmm_1.c, xsmm_2.c). */
int64_t xetl_dispatch(const struct xetl_brgemm *asked);
void xetl_invoke(int64_t kernel, const void *a, const void *b, void *c,
                 unsigned long long batch);
#endif /* XETL_XSMM_H */
