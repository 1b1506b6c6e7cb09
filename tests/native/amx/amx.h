/* An emulator of Intel AMX for tests on processors without it.
 *
 * A handler of SIGILL decodes the instruction that trapped (decode.c), carries it out
 * on eight tiles that belong to the thread (tiles.c), and goes on behind it
 * (handler.c). Each thread counts what it ran.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2,
 * the pages of the instructions named below, and volume 1, chapter 18 (AMX).
 */
#ifndef XETL_TESTS_AMX_H
#define XETL_TESTS_AMX_H

#include <stdint.h>

enum amx_kind {
    LDTILECFG,
    STTILECFG,
    TILERELEASE,
    TILEZERO,
    TILELOADD,
    TILELOADDT1,
    TILESTORED,
    TDPBF16PS,
    TDPFP16PS,
    TDPBSSD,
    TDPBSUD,
    TDPBUSD,
    TDPBUUD,
    AMX_KINDS
};

enum {
    TILES = 8,
    MAX_ROWS = 16,
    MAX_ROW_BYTES = 64,
    CONFIG_BYTES = 64,
    LINE_BYTES = 64,
};

/* One decoded instruction. Addresses are those of the registers at the trap. */
struct amx_instruction {
    enum amx_kind kind;
    int length;                  /* bytes of code */
    int destination;             /* tile numbers: D += A * B */
    int first, second;
    char *address;               /* of the configuration, or of row 0 */
    int64_t stride;              /* bytes from row to row */
};

/* The state of one thread. `configured` is 0 until ldtilecfg, and after tilerelease. */
struct amx_state {
    int configured;
    uint8_t config[CONFIG_BYTES];
    uint8_t rows[TILES];
    uint16_t row_bytes[TILES];
    uint8_t data[TILES][MAX_ROWS][MAX_ROW_BYTES];
    uint64_t counts[AMX_KINDS];
    uint64_t traps, errors;
    uint64_t slow_loads;         /* by tileloaddt1, rows not on lines an odd number apart */
    char message[160];           /* of the first error */
    struct amx_state *next;      /* of another thread */
};

/* Decode the code at `code`; `registers` are rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
 * Returns 0 where no AMX instruction stands. */
int amx_decode(const uint8_t *code, const uint64_t registers[16],
               struct amx_instruction *found);

/* Carry an instruction out. Returns NULL, or what a real processor would fault for. */
const char *amx_execute(struct amx_state *state, const struct amx_instruction *one);

#endif
