/* Small problems, odd in every way that a kernel can trip over.
 * SPDX-License-Identifier: Apache-2.0 */
#include "conform/conform_cases.h"

#include <stddef.h>

const char *const fp8r_conform_cases[] = {
    /* nothing to multiply */
    "0x16x32", "16x0x32", "16x16x0", "5x7x0:bias:fp32", "0*4x4x4", "3*4x5x0:bias",
    /* one of everything, and one beside the powers of two */
    "1x1x1", "1x1x17", "1x17x1", "17x1x1", "1x64x64", "2x64x64", "3x63x65", "4x65x63", "5x31x33", "7x129x127",
    "8x128x128", "9x127x129", "15x16x16", "16x16x16", "17x48x80", "31x33x257", "33x255x65", "64x64x64",
    "65x66x67", "100x200x300", "127x129x131", "130x40x1030", "3x1000x777", "1x301x2049", "6x16x4099",
    /* types of out, bias and a */
    "4x24x40:fp16", "4x24x40:fp32", "4x24x40:bias", "4x24x40:bias=fp16", "4x24x40:bias=fp32",
    "9x24x40:fp16:bias", "9x24x40:fp16:bias=bf16", "9x24x40:fp16:bias=fp32", "33x24x40:fp32:bias",
    "33x24x40:fp32:bias=bf16", "33x24x40:fp32:bias=fp16", "1x65x130:a=e5m2", "37x65x130:a=e5m2:fp16",
    "1x65x130:a=bf16", "37x65x130:a=bf16:bias", "1x65x130:a=fp16:fp16", "37x65x130:a=fp16:fp32",
    /* kinds of scale */
    "1x40x72:tensor", "19x40x72:tensor", "19x40x72:sa=tensor", "19x40x72:sb=tensor", "19x40x72:sa=none",
    "19x40x72:sb=none", "19x40x72:sa=none:sb=none:fp32", "3*19x40x72:sa=batch:sb=batch", "3*19x40x72:tensor",
    "3*19x40x72:sa=batch", "19x40x72:a=bf16:sb=tensor",
    /* batches */
    "2*1x33x65", "3*8x16x32", "5*17x31x47:bias:fp16", "2*3x5x7:a=bf16",
    /* layouts, pitches, steps and alignments */
    "18x34x66:ta", "18x34x66:tb", "18x34x66:to", "18x34x66:ta:tb:to", "1x34x66:tb", "18x34x66:lda=80",
    "18x34x66:ldb=71", "18x34x66:ldo=50", "18x34x66:lda=67:ldb=67:ldo=35", "18x34x66:ta:lda=19",
    "18x34x66:tb:ldb=35", "18x34x66:to:ldo=19", "18x34x66:ia=2", "18x34x66:ib=3", "18x34x66:io=2",
    "2*18x34x66:ba=1200:bb=2500:bo=700", "3*18x34x66:ba=0", "3*18x34x66:bb=0:bias", "18x34x66:lda=0",
    "18x34x66:align=1", "18x34x66:fp32:align=4:bias", "18x34x64:align=16", "64x128x256:align=2",
    "40x72x136:a=bf16:ta", "40x72x136:a=fp16:lda=150:align=2",
    /* modes */
    "1x48x64:precise", "21x48x64:precise:bias", "1x48x64:invariant", "21x48x64:invariant",
    "150x48x640:invariant:bias", "2*21x48x64:invariant:fp32", "21x48x64:static", NULL};
