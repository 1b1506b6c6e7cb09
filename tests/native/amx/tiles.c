/* What the instructions do to the tiles of a thread. */
#include "amx.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Configuration ----------------------------------------------------------------- */

/* Bytes 0: palette, 1: start_row, 16..47: colsb of 16 tiles, 48..63: their rows. */
static const char *load_config(struct amx_state *state, const uint8_t *config)
{
    if (config[0] == 0) {
        state->configured = 0;
        return NULL;
    }
    if (config[0] != 1) {
        return "ldtilecfg: a palette other than 0 and 1";
    }
    for (int byte = 2; byte < 16; byte++) {
        if (config[byte]) {
            return "ldtilecfg: a reserved byte is not 0";
        }
    }
    for (int tile = 0; tile < 16; tile++) {
        uint16_t row_bytes;
        const uint8_t rows = config[48 + tile];
        memcpy(&row_bytes, config + 16 + 2 * tile, 2);
        if (tile >= TILES && (rows || row_bytes)) {
            return "ldtilecfg: there are tiles 0 to 7 only";
        }
        if (rows > MAX_ROWS || row_bytes > MAX_ROW_BYTES) {
            return "ldtilecfg: a tile has more than 16 rows of 64 bytes";
        }
        if (!rows != !row_bytes) {
            return "ldtilecfg: a tile has rows or bytes, but not both";
        }
    }
    for (int tile = 0; tile < TILES; tile++) {
        memcpy(&state->row_bytes[tile], config + 16 + 2 * tile, 2);
        state->rows[tile] = config[48 + tile];
    }
    memcpy(state->config, config, CONFIG_BYTES);
    memset(state->data, 0, sizeof state->data);
    state->configured = 1;
    return NULL;
}

static void store_config(const struct amx_state *state, char *address)
{
    memset(address, 0, CONFIG_BYTES);
    if (state->configured) {
        memcpy(address, state->config, CONFIG_BYTES);
    }
}

static const char *check_tile(const struct amx_state *state, int tile)
{
    if (!state->configured) {
        return "a tile is used, but no tile is configured";
    }
    return state->rows[tile] ? NULL : "a tile is used that is not configured";
}

/* Loads and stores -------------------------------------------------------------- */

static void load_tile(struct amx_state *state, const struct amx_instruction *one)
{
    const int tile = one->destination;

    memset(state->data[tile], 0, sizeof state->data[tile]);
    for (int row = 0; row < state->rows[tile]; row++) {
        memcpy(state->data[tile][row], one->address + row * one->stride,
               state->row_bytes[tile]);
    }
}

static void store_tile(const struct amx_state *state,
                       const struct amx_instruction *one)
{
    const int tile = one->destination;

    for (int row = 0; row < state->rows[tile]; row++) {
        memcpy(one->address + row * one->stride, state->data[tile][row],
               state->row_bytes[tile]);
    }
}

/* Products ---------------------------------------------------------------------- */

/* Subnormal numbers count as zero, before and after (DAZ = FTZ = 1). */
static float flushed(float value)
{
    return fabsf(value) < FLT_MIN ? copysignf(0.0f, value) : value;
}

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return flushed(value);
}

/* Subnormal halves are exact numbers in f32 and are kept. */
static float from_f16(uint16_t bits)
{
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const float sign = (bits & 0x8000) ? -1.0f : 1.0f;

    if (exponent == 31) {
        return fraction ? NAN : sign * INFINITY;
    }
    if (exponent == 0) {
        return sign * ldexpf((float)fraction, -24);
    }
    return sign * ldexpf((float)(fraction + 1024), exponent - 25);
}

static float half_number(const uint8_t *row, int number, enum amx_kind kind)
{
    uint16_t bits;
    memcpy(&bits, row + 2 * number, 2);
    return kind == TDPBF16PS ? from_bf16(bits) : from_f16(bits);
}

static float fused(float a, float b, float c)
{
    return flushed(fmaf(a, b, c));
}

/* One number of D: even and odd products are summed apart, each sum fused. */
static void add_floats(uint8_t *sum, const uint8_t *a, uint8_t b[][MAX_ROW_BYTES],
                       int column, int pairs, enum amx_kind kind)
{
    float even = 0.0f, odd = 0.0f, total;

    for (int k = 0; k < pairs; k++) {
        even = fused(half_number(a, 2 * k, kind),
                     half_number(b[k], 2 * column, kind), even);
        odd = fused(half_number(a, 2 * k + 1, kind),
                    half_number(b[k], 2 * column + 1, kind), odd);
    }
    memcpy(&total, sum, 4);
    total = flushed(flushed(total) + flushed(even + odd));
    memcpy(sum, &total, 4);
}

static int32_t byte_number(uint8_t bits, int is_signed)
{
    return is_signed ? (int8_t)bits : bits;
}

static void add_integers(uint8_t *sum, const uint8_t *a, uint8_t b[][MAX_ROW_BYTES],
                         int column, int quads, enum amx_kind kind)
{
    const int signed_a = kind == TDPBSSD || kind == TDPBSUD;
    const int signed_b = kind == TDPBSSD || kind == TDPBUSD;
    uint32_t total;                         /* wraps, as the processor does */

    memcpy(&total, sum, 4);
    for (int k = 0; k < quads; k++) {
        for (int i = 0; i < 4; i++) {
            total += (uint32_t)(byte_number(a[4 * k + i], signed_a)
                                * byte_number(b[k][4 * column + i], signed_b));
        }
    }
    memcpy(sum, &total, 4);
}

static const char *check_product(const struct amx_state *state,
                                 const struct amx_instruction *one)
{
    const int d = one->destination, a = one->first, b = one->second;
    const char *problem = check_tile(state, d);

    problem = problem ? problem : check_tile(state, a);
    problem = problem ? problem : check_tile(state, b);
    if (problem) {
        return problem;
    }
    if (d == a || d == b || a == b) {
        return "a product names one tile twice";
    }
    if (state->rows[d] != state->rows[a]) {
        return "a product: D and A differ in rows";
    }
    if (state->row_bytes[d] != state->row_bytes[b]) {
        return "a product: D and B differ in columns";
    }
    if (state->row_bytes[a] != 4 * state->rows[b]) {
        return "a product: A's columns are not B's rows";
    }
    return state->row_bytes[d] % 4 ? "a product: D has a part of a number" : NULL;
}

static const char *multiply(struct amx_state *state, const struct amx_instruction *one)
{
    const char *problem = check_product(state, one);
    const int d = one->destination, a = one->first, b = one->second;
    const int floats = one->kind == TDPBF16PS || one->kind == TDPFP16PS;

    if (problem) {
        return problem;
    }
    for (int row = 0; row < state->rows[d]; row++) {
        for (int column = 0; column < state->row_bytes[d] / 4; column++) {
            (floats ? add_floats : add_integers)(
                state->data[d][row] + 4 * column, state->data[a][row],
                state->data[b], column, state->rows[b], one->kind);
        }
    }
    return NULL;
}

const char *amx_execute(struct amx_state *state, const struct amx_instruction *one)
{
    const char *problem;

    switch (one->kind) {
    case LDTILECFG:
        return load_config(state, (const uint8_t *)one->address);
    case STTILECFG:
        store_config(state, one->address);
        return NULL;
    case TILERELEASE:
        state->configured = 0;
        return NULL;
    case TILEZERO:
    case TILELOADD:
    case TILELOADDT1:
    case TILESTORED:
        problem = check_tile(state, one->destination);
        if (problem) {
            return problem;
        }
        if (one->kind == TILESTORED) {
            store_tile(state, one);
        } else if (one->kind == TILEZERO) {
            memset(state->data[one->destination], 0, sizeof state->data[0]);
        } else {
            load_tile(state, one);
        }
        return NULL;
    default:
        return multiply(state, one);
    }
}
