"""What is counted in a disassembly."""

from xetl_xegpu.offline.isa import count, loops

# Lines as ocloc 26.27 prints them for pvc.
KERNEL = """\
L0:
(W)     and (1|M0)               r255.0<1>:ud  r0.0<0;1,0>:ud    0xFFFFFFC0:ud
(W)     send.ugm (1|M0)          r1       r255    null:0  0xFF000000    0x6218C500 \
 {A@1,$0} // wr:1+0, rd:1; load.ugm.d32x8t.a32.ca.ca.bti[255]
        send.ugm (1|M0)          r3       r7      null:0  0x0    0x02400203 \
 {I@7,$1} // wr:1+0, rd:4; load_block2d.ugm.d16.a64
        send.ugm (1|M0)          r8       r16     null:0  0x0    0x02800283 \
 {A@4,$2} // wr:1+0, rd:8; load_block2d.ugm.d16v.a64
        send.ugm (1|M0)          null     r2      null:0  0x0    0x02080203 \
 {I@7,$3} // wr:1+0, rd:0; load_block2d.ugm.d16.a64.ca.ca
        sync.nop                             null              {Compacted,$2.dst}
L320:
        dpas.8x8 (16|M0)         r17:f         null:f   r8:bf     r3.0:bf     {$1}
(W&f0.0) jmpi                    L320
        send.ugm (1|M0)          null     r25     r17:8   0x0    0x02000407 \
 {A@1,$1} // wr:1+8, rd:0; store_block2d.ugm.d32.a64
(~f1.0) calla (16|M0)            r127.0        r127.0             {A@1}
(W)     send.gtwy (1|M0)         null     r255    null:0  0x0    0x02000010 \
 {EOT,F@1,$4} // wr:1+0, rd:0; end of thread
L648:
        nop
(W)     mov (16|M0)              null<1>:ud    0x55482F72:ud
        illegal
"""


def test_instructions_are_counted_up_to_the_end() -> None:
    found = count(KERNEL)
    assert found.instructions == 11
    assert (found.dpas, found.calls) == (1, 1)
    assert (found.block_loads, found.prefetches, found.block_stores) == (2, 1, 1)
    assert found.names["send load"] == 1
    assert found.names["jmpi"] == 1
    assert "mov" not in found.names


def test_an_empty_kernel_has_nothing() -> None:
    assert count("").instructions == 0


LOOPS = """\
L0:
        mov (1|M0)               r1.0<1>:d     0:d
L16:
        add (1|M0)               r1.0<1>:d     r1.0<0;1,0>:d     1:d
L32:
        dpas.8x8 (16|M0)         r245:f        r245:f    r42:bf    r4.0:bf
(W&f0.0) jmpi                                L32
(W&f1.0) jmpi                                L16
(W&f0.1) jmpi                                L900
L900:
        mov (1|M0)               r2.0<1>:d     0:d
"""


def test_innermost_loops_end_where_they_jump_back() -> None:
    (inner,) = loops(LOOPS)
    assert inner.instructions == 2
    assert inner.dpas == 1
