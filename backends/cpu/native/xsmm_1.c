/* libxsmm 1.17: a dispatch for each pair of types, kernels that take four pointers.
 *
 * It has no AMX.  Source: libxsmm.h of version 1.17.
 */
#include "xsmm.h"

int64_t xetl_dispatch(const struct xetl_brgemm *asked)
{
    const int bytes = (int)xetl_bytes_of_a(asked->dtype);
    const int m = (int)asked->m, n = (int)asked->n, k = (int)asked->k;
    const int stride_a = (int)asked->stride_a * bytes;
    const int stride_b = (int)asked->stride_b * bytes;
    const libxsmm_blasint lda = (libxsmm_blasint)asked->lda;
    const libxsmm_blasint ldb = (libxsmm_blasint)asked->ldb;
    const libxsmm_blasint ldc = (libxsmm_blasint)asked->ldc;
    const float alpha = 1.0f;
    const float beta = (asked->flags & XETL_BETA_0) ? 0.0f : 1.0f;
    const int prefetch = LIBXSMM_PREFETCH_NONE;
    const int flat = LIBXSMM_GEMM_FLAG_NONE, vnni = LIBXSMM_GEMM_FLAG_VNNI_A;

    if (!xetl_is_supported(asked, XETL_BETA_0 | XETL_VNNI_B))
        return 0;
    switch (asked->dtype) {
    case XETL_F32:
        return (int64_t)(intptr_t)libxsmm_smmdispatch_reducebatch_strd(
            n, m, k, stride_b, stride_a, &ldb, &lda, &ldc, &alpha, &beta, &flat,
            &prefetch);
    case XETL_BF16:
        return (int64_t)(intptr_t)libxsmm_bmmdispatch_reducebatch_strd(
            n, m, k, stride_b, stride_a, &ldb, &lda, &ldc, &alpha, &beta, &vnni,
            &prefetch);
    default:
        return (int64_t)(intptr_t)libxsmm_bsmmdispatch_reducebatch_strd(
            n, m, k, stride_b, stride_a, &ldb, &lda, &ldc, &alpha, &beta, &vnni,
            &prefetch);
    }
}

void xetl_invoke(int64_t kernel, const void *a, const void *b, void *c,
                 unsigned long long batch)
{
    typedef void (*brgemm)(const void *, const void *, void *,
                           const unsigned long long *);

    ((brgemm)(intptr_t)kernel)(b, a, c, &batch);
}
