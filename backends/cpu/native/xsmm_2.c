/* libxsmm 2: one dispatch for all types, kernels that take a structure, and AMX tiles
 * that are set up apart from the products.
 *
 * All numbers come from the header: they changed between versions.  A product either
 * sets its tiles up and gives them back, or does neither.  Source: libxsmm_typedefs.h.
 */
#include <string.h>

#include "xsmm.h"

enum { TILE_FLAGS = XETL_NO_RESET_TILECONFIG | XETL_NO_SETUP_TILECONFIG };

static libxsmm_gemm_shape shape_of(const struct xetl_brgemm *asked)
{
    const libxsmm_datatype in =
        asked->dtype == XETL_F32 ? LIBXSMM_DATATYPE_F32 : LIBXSMM_DATATYPE_BF16;
    const libxsmm_datatype out =
        asked->dtype == XETL_BF16 ? LIBXSMM_DATATYPE_BF16 : LIBXSMM_DATATYPE_F32;

    return libxsmm_create_gemm_shape(
        (libxsmm_blasint)asked->n, (libxsmm_blasint)asked->m,
        (libxsmm_blasint)asked->k, (libxsmm_blasint)asked->ldb,
        (libxsmm_blasint)asked->lda, (libxsmm_blasint)asked->ldc, in, in, out,
        LIBXSMM_DATATYPE_F32);
}

static libxsmm_bitfield flags_of(int64_t flags)
{
    libxsmm_bitfield found = LIBXSMM_GEMM_FLAG_NONE;

    if (flags & XETL_BETA_0)
        found |= LIBXSMM_GEMM_FLAG_BETA_0;
    if (flags & XETL_NO_RESET_TILECONFIG)
        found |= LIBXSMM_GEMM_FLAG_NO_RESET_TILECONFIG;
    if (flags & XETL_NO_SETUP_TILECONFIG)
        found |= LIBXSMM_GEMM_FLAG_NO_SETUP_TILECONFIG;
    if (flags & XETL_VNNI_B)
        found |= LIBXSMM_GEMM_FLAG_VNNI_A;
    return found;
}

/* A kernel that sets tiles up (it does not reset them), or one that gives them back. */
static int64_t tile_config(const struct xetl_brgemm *asked, int64_t which)
{
    const int64_t flags = (asked->flags & XETL_VNNI_B) | which;

    return (int64_t)(intptr_t)libxsmm_dispatch_tilecfg_gemm(shape_of(asked),
                                                            flags_of(flags));
}

int64_t xetl_dispatch(const struct xetl_brgemm *asked)
{
    const int64_t bytes = xetl_bytes_of_a(asked->dtype);
    const int64_t tiles = asked->flags & TILE_FLAGS;
    libxsmm_gemm_batch_reduce_config batch;

    if (!xetl_is_supported(asked, XETL_BETA_0 | XETL_VNNI_B | TILE_FLAGS))
        return 0;
    if (tiles && tiles != TILE_FLAGS)
        return 0;
    /* Tiles that nobody sets up would be computed with. */
    if (tiles && !(tile_config(asked, XETL_NO_RESET_TILECONFIG)
                   && tile_config(asked, XETL_NO_SETUP_TILECONFIG)))
        return 0;
    batch = libxsmm_create_gemm_batch_reduce_config(
        LIBXSMM_GEMM_BATCH_REDUCE_STRIDE, (libxsmm_blasint)(asked->stride_b * bytes),
        (libxsmm_blasint)(asked->stride_a * bytes), 0);
    return (int64_t)(intptr_t)libxsmm_dispatch_brgemm(
        shape_of(asked), flags_of(asked->flags), 0 /* no prefetch */, batch);
}

void xetl_invoke(int64_t kernel, const void *a, const void *b, void *c,
                 unsigned long long batch)
{
    libxsmm_gemm_param param;

    memset(&param, 0, sizeof param);
    param.op.tertiary = &batch;
    param.a.primary = (void *)b;
    param.b.primary = (void *)a;
    param.c.primary = c;
    ((libxsmm_gemmfunction)(intptr_t)kernel)(&param);
}

int64_t xsmm_intel_amx_tile_config_dispatch(int64_t dtype, int64_t m, int64_t n,
                                            int64_t k, int64_t lda, int64_t ldb,
                                            int64_t ldc, int64_t stride_a,
                                            int64_t stride_b, int64_t flags)
{
    const struct xetl_brgemm asked = {dtype, m,   n,        k,        lda,
                                      ldb,   ldc, stride_a, stride_b, flags};
    const int64_t which = flags & TILE_FLAGS;

    if (!xetl_is_supported(&asked, XETL_VNNI_B | TILE_FLAGS) || which == 0
        || which == TILE_FLAGS)
        return 0;
    libxsmm_init();
    return tile_config(&asked, which);
}

void xsmm_intel_amx_tile_config_invoke(int64_t dtype, int64_t kernel, void *state,
                                       int64_t offset)
{
    (void)dtype;
    (void)offset; /* the state has no elements to count */
    if (kernel)
        ((libxsmm_tilecfgfunction)(intptr_t)kernel)((libxsmm_tilecfg_state *)state);
}
