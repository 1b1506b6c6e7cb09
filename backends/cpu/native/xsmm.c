/* What is the same for all versions of libxsmm: numbers, sizes, pointers. */
#include "xsmm.h"

int64_t xetl_xsmm_version(void)
{
    return LIBXSMM_VERSION_MAJOR * 1000 + LIBXSMM_VERSION_MINOR;
}

const char *xetl_xsmm_target(void)
{
    libxsmm_init();
    return libxsmm_get_target_arch();
}

int64_t xetl_bytes_of_a(int64_t dtype)
{
    return dtype == XETL_F32 ? 4 : 2;
}

int64_t xetl_bytes_of_c(int64_t dtype)
{
    return dtype == XETL_BF16 ? 2 : 4;
}

/* libxsmm's integers have 32 bits, and a larger one would only be cut. */
static int fits(int64_t value)
{
    return value >= 0 && value <= INT32_MAX;
}

int xetl_is_supported(const struct xetl_brgemm *asked, int64_t flags)
{
    const int64_t bytes = xetl_bytes_of_a(asked->dtype);
    const int is_f32 = asked->dtype == XETL_F32;
    const int is_bf16 = asked->dtype == XETL_BF16 || asked->dtype == XETL_BF16_F32;
    const int in_pairs = (asked->flags & XETL_VNNI_B) != 0;

    /* Pairs are how bf16 comes, and nothing else. */
    if ((asked->flags & ~flags) || !(is_f32 || is_bf16) || is_bf16 != in_pairs)
        return 0;
    return fits(asked->m) && fits(asked->n) && fits(asked->k) && fits(asked->lda)
           && fits(asked->ldb) && fits(asked->ldc) && fits(asked->stride_a * bytes)
           && fits(asked->stride_b * bytes);
}

int64_t xsmm_brgemm_dispatch(int64_t dtype, int64_t m, int64_t n, int64_t k,
                             int64_t lda, int64_t ldb, int64_t ldc,
                             int64_t stride_a, int64_t stride_b, int64_t flags)
{
    const struct xetl_brgemm asked = {dtype, m,   n,        k,        lda,
                                      ldb,   ldc, stride_a, stride_b, flags};

    libxsmm_init();
    return xetl_dispatch(&asked);
}

void xsmm_brgemm_invoke(int64_t dtype, int64_t kernel,
                        const void *a, int64_t a_offset,
                        const void *b, int64_t b_offset,
                        void *c, int64_t c_offset, int64_t batch)
{
    const int64_t bytes = xetl_bytes_of_a(dtype);

    xetl_invoke(kernel, (const char *)a + a_offset * bytes,
                (const char *)b + b_offset * bytes,
                (char *)c + c_offset * xetl_bytes_of_c(dtype),
                (unsigned long long)batch);
}
