/* What of libxsmm 2.0.0's interface our shim uses: names, numbers and layouts only.
 *
 * Written from what is documented of it (and measured of it); it is no part of it.
 */
#ifndef LIBXSMM_H
#define LIBXSMM_H

#define LIBXSMM_VERSION_MAJOR 2
#define LIBXSMM_VERSION_MINOR 0

typedef int libxsmm_blasint;
typedef unsigned int libxsmm_bitfield;

typedef enum libxsmm_datatype {
    LIBXSMM_DATATYPE_F64,
    LIBXSMM_DATATYPE_F32,
    LIBXSMM_DATATYPE_BF16,
    LIBXSMM_DATATYPE_F16
} libxsmm_datatype;

typedef enum libxsmm_gemm_flags {
    LIBXSMM_GEMM_FLAG_NONE = 0,
    LIBXSMM_GEMM_FLAG_BETA_0 = 4,
    LIBXSMM_GEMM_FLAG_NO_RESET_TILECONFIG = 64,
    LIBXSMM_GEMM_FLAG_NO_SETUP_TILECONFIG = 128,
    LIBXSMM_GEMM_FLAG_VNNI_A = 256,
    LIBXSMM_GEMM_FLAG_VNNI_B = 512,
    LIBXSMM_GEMM_FLAG_VNNI_C = 1024
} libxsmm_gemm_flags;

typedef enum libxsmm_gemm_batch_reduce_type {
    LIBXSMM_GEMM_BATCH_REDUCE_NONE = 0,
    LIBXSMM_GEMM_BATCH_REDUCE_ADDRESS = 1,
    LIBXSMM_GEMM_BATCH_REDUCE_OFFSET = 2,
    LIBXSMM_GEMM_BATCH_REDUCE_STRIDE = 4
} libxsmm_gemm_batch_reduce_type;

typedef struct libxsmm_gemm_shape {
    libxsmm_blasint m, n, k, lda, ldb, ldc;
    libxsmm_datatype a_in_type, b_in_type, out_type, comp_type;
} libxsmm_gemm_shape;

typedef struct libxsmm_gemm_batch_reduce_config {
    libxsmm_gemm_batch_reduce_type br_type;
    libxsmm_blasint br_stride_a_hint, br_stride_b_hint;
    unsigned char br_unroll_hint;
} libxsmm_gemm_batch_reduce_config;

typedef struct libxsmm_matrix_op_arg {
    void *primary, *secondary, *tertiary, *quaternary;
} libxsmm_matrix_op_arg;

typedef struct libxsmm_matrix_arg {
    void *primary, *secondary, *tertiary, *quaternary, *quinary, *senary;
} libxsmm_matrix_arg;

typedef struct libxsmm_gemm_param {
    libxsmm_matrix_op_arg op;
    libxsmm_matrix_arg a, b, c;
} libxsmm_gemm_param;

typedef struct libxsmm_tilecfg_state {
    unsigned char tileconfig[64];
} libxsmm_tilecfg_state;

typedef void (*libxsmm_gemmfunction)(const libxsmm_gemm_param *param);
typedef void (*libxsmm_tilecfgfunction)(const libxsmm_tilecfg_state *state);

void libxsmm_init(void);
const char *libxsmm_get_target_arch(void);
libxsmm_gemm_shape libxsmm_create_gemm_shape(
    libxsmm_blasint m, libxsmm_blasint n, libxsmm_blasint k, libxsmm_blasint lda,
    libxsmm_blasint ldb, libxsmm_blasint ldc, libxsmm_datatype a_in_type,
    libxsmm_datatype b_in_type, libxsmm_datatype out_type, libxsmm_datatype comp_type);
libxsmm_gemm_batch_reduce_config libxsmm_create_gemm_batch_reduce_config(
    libxsmm_gemm_batch_reduce_type br_type, libxsmm_blasint br_stride_a_hint,
    libxsmm_blasint br_stride_b_hint, unsigned char br_unroll_hint);
libxsmm_gemmfunction libxsmm_dispatch_brgemm(libxsmm_gemm_shape shape,
                                             libxsmm_bitfield gemm_flags,
                                             libxsmm_bitfield prefetch_flags,
                                             libxsmm_gemm_batch_reduce_config config);
libxsmm_tilecfgfunction libxsmm_dispatch_tilecfg_gemm(libxsmm_gemm_shape shape,
                                                      libxsmm_bitfield gemm_flags);
#endif /* LIBXSMM_H */
