/* From machine code to an instruction: VEX.128.0F38.W0 with opcodes 49, 4B, 5C, 5E. */
#include "amx.h"

#include <string.h>

enum prefix { NP, P66, F3, F2 };            /* the field pp of a VEX prefix */

struct vex {
    enum prefix prefix;
    int extend_reg, extend_index, extend_base;   /* R, X, B: 0 or 8 */
    int vvvv;
};

/* The three bytes C4, RXB.mmmmm, W.vvvv.L.pp; only map 0F38, W0, 128 bits.
 * 06 stands for C4 in code that is to trap where there is AMX (amx_traps.py). */
static int decode_vex(const uint8_t *code, struct vex *found)
{
    if ((code[0] != 0xC4 && code[0] != 0x06) || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0) {
        return 0;
    }
    found->prefix = (enum prefix)(code[2] & 3);
    found->extend_reg = (code[1] & 0x80) ? 0 : 8;
    found->extend_index = (code[1] & 0x40) ? 0 : 8;
    found->extend_base = (code[1] & 0x20) ? 0 : 8;
    found->vvvv = (~code[2] >> 3) & 15;
    return 1;
}

struct place {
    char *base;                             /* base register and displacement */
    int64_t index;                          /* index register times its scale */
    int length;                             /* bytes of ModRM, SIB, displacement */
};

static int32_t displacement32(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, 4);
    return value;
}

/* A memory operand. `end` is the address behind it for RIP-relative ones. */
static void decode_memory(const uint8_t *modrm, const struct vex *vex,
                          const uint64_t registers[16], struct place *found)
{
    const int mod = modrm[0] >> 6, rm = modrm[0] & 7;
    const uint8_t *rest = modrm + 1;
    uint64_t base = 0;
    int no_base = 0;

    found->index = 0;
    if (rm == 4) {
        const int scale = *rest >> 6;
        const int index = ((*rest >> 3) & 7) + vex->extend_index;
        const int number = (*rest & 7) + vex->extend_base;
        no_base = mod == 0 && (*rest & 7) == 5;
        base = no_base ? 0 : registers[number];
        if (index != 4) {                   /* 4 (rsp) says: no index */
            found->index = (int64_t)(registers[index] << scale);
        }
        rest++;
    } else if (mod == 0 && rm == 5) {       /* relative to the next instruction */
        base = (uint64_t)(rest + 4);
        no_base = 1;
    } else {
        base = registers[rm + vex->extend_base];
    }
    if (mod == 1) {
        base += (uint64_t)(int64_t)(int8_t)*rest++;
    } else if (mod == 2 || no_base) {
        base += (uint64_t)(int64_t)displacement32(rest);
        rest += 4;
    }
    found->base = (char *)base;
    found->length = (int)(rest - modrm);
}

static int decode_49(const uint8_t *modrm, const struct vex *vex,
                     const uint64_t registers[16], struct amx_instruction *found)
{
    const int reg = (modrm[0] >> 3) & 7;
    struct place place;

    if (modrm[0] >> 6 == 3) {
        found->length = 5;
        found->destination = reg;
        if (vex->prefix == NP && modrm[0] == 0xC0) {
            found->kind = TILERELEASE;
            return 1;
        }
        found->kind = TILEZERO;
        return vex->prefix == F2 && (modrm[0] & 7) == 0;
    }
    if (reg != 0 || (vex->prefix != NP && vex->prefix != P66)) {
        return 0;
    }
    decode_memory(modrm, vex, registers, &place);
    found->kind = vex->prefix == NP ? LDTILECFG : STTILECFG;
    found->address = place.base + place.index;
    found->length = 4 + place.length;
    return 1;
}

static int decode_4b(const uint8_t *modrm, const struct vex *vex,
                     const uint64_t registers[16], struct amx_instruction *found)
{
    static const int kinds[] = {
        [NP] = -1, [P66] = TILELOADDT1, [F3] = TILESTORED, [F2] = TILELOADD,
    };
    struct place place;

    if (kinds[vex->prefix] < 0 || modrm[0] >> 6 == 3 || (modrm[0] & 7) != 4) {
        return 0;
    }
    decode_memory(modrm, vex, registers, &place);
    found->kind = (enum amx_kind)kinds[vex->prefix];
    found->destination = (modrm[0] >> 3) & 7;
    found->address = place.base;
    found->stride = place.index;
    found->length = 4 + place.length;
    return 1;
}

static int decode_product(const uint8_t *modrm, const struct vex *vex, int opcode,
                          struct amx_instruction *found)
{
    static const int floats[] = {
        [NP] = -1, [P66] = -1, [F3] = TDPBF16PS, [F2] = TDPFP16PS,
    };
    static const int integers[] = {
        [NP] = TDPBUUD, [P66] = TDPBUSD, [F3] = TDPBSUD, [F2] = TDPBSSD,
    };
    const int kind = (opcode == 0x5C ? floats : integers)[vex->prefix];

    if (kind < 0 || modrm[0] >> 6 != 3 || vex->vvvv >= TILES) {
        return 0;
    }
    found->kind = (enum amx_kind)kind;
    found->destination = (modrm[0] >> 3) & 7;
    found->first = modrm[0] & 7;
    found->second = vex->vvvv;
    found->length = 5;
    return 1;
}

int amx_decode(const uint8_t *code, const uint64_t registers[16],
               struct amx_instruction *found)
{
    struct vex vex;

    memset(found, 0, sizeof *found);
    if (!decode_vex(code, &vex)) {
        return 0;
    }
    switch (code[3]) {
    case 0x49:
        return decode_49(code + 4, &vex, registers, found);
    case 0x4B:
        return decode_4b(code + 4, &vex, registers, found);
    case 0x5C:
    case 0x5E:
        return decode_product(code + 4, &vex, code[3], found);
    default:
        return 0;
    }
}
