/* The xsmm_* C functions that seed 003 calls, served by libxsmm 1.17.
 *
 * Row-major in, column-major below: libxsmm's A is our B and its m is our n. Strides
 * between the matrices of a batch are given in elements and passed on in bytes.
 * A dispatch that libxsmm cannot serve returns 0; nothing here ends the process.
 *
 * Sources: seed 003 (names, arguments, flag numbers), libxsmm.h of version 1.17.
 */
#include <libxsmm.h>
#include <stdint.h>

/* BF16_F32 is ours: A and B are bf16, C is f32.  It is no number of libxsmm's. */
enum data_type { XETL_F32 = 1, XETL_BF16 = 2, XETL_BF16_F32 = 258 };
enum gemm_flag { XETL_BETA_0 = 4, XETL_VNNI_B = 2048 };

/* The library this was built against: major * 1000 + minor. */
int64_t xetl_xsmm_version(void)
{
    return LIBXSMM_VERSION_MAJOR * 1000 + LIBXSMM_VERSION_MINOR;
}

/* What libxsmm found the processor to be, such as "cpx". */
const char *xetl_xsmm_target(void)
{
    libxsmm_init();
    return libxsmm_get_target_arch();
}

int64_t xsmm_brgemm_dispatch(int64_t dtype, int64_t m, int64_t n, int64_t k,
                             int64_t lda, int64_t ldb, int64_t ldc,
                             int64_t stride_a, int64_t stride_b, int64_t flags)
{
    const libxsmm_blasint ld_of_b = (libxsmm_blasint)ldb;
    const libxsmm_blasint ld_of_a = (libxsmm_blasint)lda;
    const libxsmm_blasint ld_of_c = (libxsmm_blasint)ldc;
    const float alpha = 1.0f;
    const float beta = (flags & XETL_BETA_0) ? 0.0f : 1.0f;
    const int prefetch = LIBXSMM_PREFETCH_NONE;
    const int size = dtype == XETL_F32 ? 4 : 2;

    if (flags & ~(int64_t)(XETL_BETA_0 | XETL_VNNI_B)) {
        return 0;
    }
    libxsmm_init();
    if (dtype == XETL_F32 && !(flags & XETL_VNNI_B)) {
        const int none = LIBXSMM_GEMM_FLAG_NONE;
        return (int64_t)(intptr_t)libxsmm_smmdispatch_reducebatch_strd(
            (int)n, (int)m, (int)k, (int)(stride_b * size), (int)(stride_a * size),
            &ld_of_b, &ld_of_a, &ld_of_c, &alpha, &beta, &none, &prefetch);
    }
    if (dtype == XETL_BF16 && (flags & XETL_VNNI_B)) {
        const int vnni = LIBXSMM_GEMM_FLAG_VNNI_A;
        return (int64_t)(intptr_t)libxsmm_bmmdispatch_reducebatch_strd(
            (int)n, (int)m, (int)k, (int)(stride_b * size), (int)(stride_a * size),
            &ld_of_b, &ld_of_a, &ld_of_c, &alpha, &beta, &vnni, &prefetch);
    }
    if (dtype == XETL_BF16_F32 && (flags & XETL_VNNI_B)) {
        const int vnni = LIBXSMM_GEMM_FLAG_VNNI_A;
        return (int64_t)(intptr_t)libxsmm_bsmmdispatch_reducebatch_strd(
            (int)n, (int)m, (int)k, (int)(stride_b * size), (int)(stride_a * size),
            &ld_of_b, &ld_of_a, &ld_of_c, &alpha, &beta, &vnni, &prefetch);
    }
    return 0;
}

/* C += the sum of `batch` products. */
void xsmm_brgemm_invoke(int64_t dtype, int64_t kernel,
                        const void *a, int64_t a_offset,
                        const void *b, int64_t b_offset,
                        void *c, int64_t c_offset, int64_t batch)
{
    typedef void (*brgemm)(const void *, const void *, void *,
                           const unsigned long long *);
    const int64_t size = dtype == XETL_F32 ? 4 : 2;
    const int64_t size_of_c = dtype == XETL_BF16 ? 2 : 4;
    const unsigned long long count = (unsigned long long)batch;
    const brgemm run = (brgemm)(intptr_t)kernel;

    run((const char *)b + b_offset * size, (const char *)a + a_offset * size,
        (char *)c + c_offset * size_of_c, &count);
}
