/* A stand-in for libxsmm 2: plain loops behind its interface.
 *
 * With LIBXSMM_TARGET=spr it runs the same AMX instructions around its loops as libxsmm
 * does around its own: kernels that may not set tiles up touch one, so an emulator sees
 * whether somebody has.  XETL_STAND_IN says what it shall do wrong: `null` (no kernels),
 * `tiles` (none that set tiles up), `crash` (an instruction that no processor has).
 */
#include "libxsmm.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(libxsmm_gemm_shape) == 40, "as in libxsmm 2.0.0");
_Static_assert(sizeof(libxsmm_gemm_batch_reduce_config) == 16, "as in libxsmm 2.0.0");
_Static_assert(sizeof(libxsmm_gemm_param) == 176, "as in libxsmm 2.0.0");

enum {
    KERNELS = 64,
    TILES = LIBXSMM_GEMM_FLAG_NO_RESET_TILECONFIG | LIBXSMM_GEMM_FLAG_NO_SETUP_TILECONFIG
};

struct kernel {
    libxsmm_gemm_shape shape;
    libxsmm_bitfield flags;
    libxsmm_gemm_batch_reduce_config config;
};

static struct kernel kernels[KERNELS];
static int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Tile instructions on (%rax) and tmm0 with 06 in place of C4: they trap on every
 * processor, also on those that have AMX, so that the emulator counts them. */
#define LDTILECFG ".byte 0x06, 0xE2, 0x78, 0x49, 0x00"
#define STTILECFG ".byte 0x06, 0xE2, 0x79, 0x49, 0x00"
#define TILEZERO ".byte 0x06, 0xE2, 0x7B, 0x49, 0xC0"
#define TILERELEASE ".byte 0x06, 0xE2, 0x78, 0x49, 0xC0"

/* All eight tiles with 16 rows of 64 bytes. */
static const unsigned char whole_tiles[64] = {
    [0] = 1,   [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64,
    [28] = 64, [30] = 64, [48] = 16, [49] = 16, [50] = 16, [51] = 16, [52] = 16,
    [53] = 16, [54] = 16, [55] = 16};

static int is(const char *variable, const char *value)
{
    const char *found = getenv(variable);

    return found && strcmp(found, value) == 0;
}

static void load_tiles(const void *from)
{
    __asm__ volatile(LDTILECFG : : "a"(from), "m"(*(const unsigned char(*)[64])from));
}

static void save_tiles(void *to)
{
    __asm__ volatile(STTILECFG : "=m"(*(unsigned char(*)[64])to) : "a"(to));
}

static float element(const char *at, int64_t index, libxsmm_datatype type)
{
    uint32_t bits = 0;
    float value;

    if (type == LIBXSMM_DATATYPE_F32)
        return ((const float *)at)[index];
    bits = (uint32_t)((const uint16_t *)at)[index] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t rounded(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Column-major: element (i, p) of A, in pairs of p if it is packed so. */
static int64_t place_in_a(const struct kernel *kernel, int64_t i, int64_t p)
{
    const int64_t lda = kernel->shape.lda;

    if (kernel->flags & LIBXSMM_GEMM_FLAG_VNNI_A)
        return p / 2 * lda * 2 + i * 2 + p % 2;
    return p * lda + i;
}

static float sum_of(const struct kernel *kernel, const libxsmm_gemm_param *param,
                    int64_t i, int64_t j)
{
    const unsigned long long count = *(unsigned long long *)param->op.tertiary;
    const libxsmm_gemm_shape *shape = &kernel->shape;
    float sum = 0;

    for (unsigned long long one = 0; one < count; one++) {
        const char *a = (char *)param->a.primary
                        + (int64_t)one * kernel->config.br_stride_a_hint;
        const char *b = (char *)param->b.primary
                        + (int64_t)one * kernel->config.br_stride_b_hint;

        for (int64_t p = 0; p < shape->k; p++)
            sum += element(a, place_in_a(kernel, i, p), shape->a_in_type)
                   * element(b, j * shape->ldb + p, shape->b_in_type);
    }
    return sum;
}

static void multiply(const struct kernel *kernel, const libxsmm_gemm_param *param)
{
    const libxsmm_gemm_shape *shape = &kernel->shape;

    for (int64_t j = 0; j < shape->n; j++)
        for (int64_t i = 0; i < shape->m; i++) {
            const int64_t place = j * shape->ldc + i;
            float sum = sum_of(kernel, param, i, j);

            if (!(kernel->flags & LIBXSMM_GEMM_FLAG_BETA_0))
                sum += element(param->c.primary, place, shape->out_type);
            if (shape->out_type == LIBXSMM_DATATYPE_F32)
                ((float *)param->c.primary)[place] = sum;
            else
                ((uint16_t *)param->c.primary)[place] = rounded(sum);
        }
}

static int uses_tiles(const struct kernel *kernel)
{
    return is("LIBXSMM_TARGET", "spr")
           && kernel->shape.a_in_type == LIBXSMM_DATATYPE_BF16;
}

static void run(const struct kernel *kernel, const libxsmm_gemm_param *param)
{
    unsigned char before[64];
    const int own = uses_tiles(kernel) && !(kernel->flags & TILES);

    if (own) {
        save_tiles(before);
        load_tiles(whole_tiles);
    }
    if (uses_tiles(kernel))
        __asm__ volatile(TILEZERO : :);
    multiply(kernel, param);
    if (own)
        load_tiles(before);
}

/* Kernels are functions of one argument, so each has its own: kernel_0 to kernel_63. */
#define EACH_OF_8(make, tens) \
    make(tens##0) make(tens##1) make(tens##2) make(tens##3) make(tens##4) make(tens##5) \
    make(tens##6) make(tens##7)
#define EACH(make) \
    EACH_OF_8(make, 0) EACH_OF_8(make, 1) EACH_OF_8(make, 2) EACH_OF_8(make, 3) \
    EACH_OF_8(make, 4) EACH_OF_8(make, 5) EACH_OF_8(make, 6) EACH_OF_8(make, 7)
#define DEFINE(octal) \
    static void kernel_##octal(const libxsmm_gemm_param *param) \
    { \
        run(&kernels[0##octal], param); \
    }
#define NAME(octal) kernel_##octal,
EACH(DEFINE)
static const libxsmm_gemmfunction functions[KERNELS] = {EACH(NAME)};

static void set_up(const libxsmm_tilecfg_state *state)
{
    if (!is("LIBXSMM_TARGET", "spr"))
        return;
    if (state)
        save_tiles((void *)(uintptr_t)state);
    load_tiles(whole_tiles);
}

static void give_back(const libxsmm_tilecfg_state *state)
{
    if (!is("LIBXSMM_TARGET", "spr"))
        return;
    if (state)
        load_tiles(state);
    else
        __asm__ volatile(TILERELEASE : :);
}

void libxsmm_init(void)
{
}

const char *libxsmm_get_target_arch(void)
{
    return is("LIBXSMM_TARGET", "spr") ? "spr" : "cpx";
}

libxsmm_gemm_shape libxsmm_create_gemm_shape(
    libxsmm_blasint m, libxsmm_blasint n, libxsmm_blasint k, libxsmm_blasint lda,
    libxsmm_blasint ldb, libxsmm_blasint ldc, libxsmm_datatype a_in_type,
    libxsmm_datatype b_in_type, libxsmm_datatype out_type, libxsmm_datatype comp_type)
{
    const libxsmm_gemm_shape shape = {m,         n,         k,        lda,      ldb, ldc,
                                      a_in_type, b_in_type, out_type, comp_type};
    return shape;
}

libxsmm_gemm_batch_reduce_config libxsmm_create_gemm_batch_reduce_config(
    libxsmm_gemm_batch_reduce_type br_type, libxsmm_blasint br_stride_a_hint,
    libxsmm_blasint br_stride_b_hint, unsigned char br_unroll_hint)
{
    const libxsmm_gemm_batch_reduce_config config = {br_type, br_stride_a_hint,
                                                     br_stride_b_hint, br_unroll_hint};
    return config;
}

static libxsmm_gemmfunction kernel_for(const struct kernel *wanted)
{
    int at;

    for (at = 0; at < used; at++)
        if (memcmp(&kernels[at], wanted, sizeof *wanted) == 0)
            return functions[at];
    if (used == KERNELS)
        return NULL;
    kernels[used] = *wanted;
    return functions[used++];
}

libxsmm_gemmfunction libxsmm_dispatch_brgemm(libxsmm_gemm_shape shape,
                                             libxsmm_bitfield gemm_flags,
                                             libxsmm_bitfield prefetch_flags,
                                             libxsmm_gemm_batch_reduce_config config)
{
    const libxsmm_bitfield tiles = gemm_flags & TILES;
    libxsmm_gemmfunction found = NULL;
    struct kernel wanted;

    if (is("XETL_STAND_IN", "crash"))
        __builtin_trap();
    if (is("XETL_STAND_IN", "null") || prefetch_flags || (tiles && tiles != TILES)
        || config.br_type != LIBXSMM_GEMM_BATCH_REDUCE_STRIDE)
        return NULL;
    memset(&wanted, 0, sizeof wanted); /* padding, too: it is compared */
    wanted.shape = shape;
    wanted.flags = gemm_flags;
    wanted.config.br_type = config.br_type;
    wanted.config.br_stride_a_hint = config.br_stride_a_hint;
    wanted.config.br_stride_b_hint = config.br_stride_b_hint;
    pthread_mutex_lock(&lock);
    found = kernel_for(&wanted);
    pthread_mutex_unlock(&lock);
    return found;
}

libxsmm_tilecfgfunction libxsmm_dispatch_tilecfg_gemm(libxsmm_gemm_shape shape,
                                                      libxsmm_bitfield gemm_flags)
{
    (void)shape;
    if (is("XETL_STAND_IN", "tiles"))
        return NULL;
    switch (gemm_flags & TILES) {
    case LIBXSMM_GEMM_FLAG_NO_RESET_TILECONFIG:
        return set_up;
    case LIBXSMM_GEMM_FLAG_NO_SETUP_TILECONFIG:
        return give_back;
    default:
        return NULL;
    }
}
