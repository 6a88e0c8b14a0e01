/* Reading problem text: "[B*]MxNxK[:option]...". The option table below is the grammar; docs/grammar.md explains it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "problem/grammar.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/conversion.h"

enum {
    UNSET = -1,
    PAD = -2,         /* a stride of which only the class counts */
    FAMILY_ROWS = 256 /* rows that stand for any: with one, pitches and scale kinds would not show, and few unalign
                         operands whose pitch is M */
};

/* What the options say, before it becomes matrices. Strides: UNSET = packed. */
struct draft {
    int64_t batch, m, n, k;
    int32_t a, out, bias, scale_a, scale_b; /* bias UNSET = out's type; scales UNSET = row, scale_a none for half a */
    bool has_bias, is_tensor, outer_a, outer_b, outer_out;
    int64_t pitch_a, pitch_b, pitch_out, inner_a, inner_b, inner_out, batch_a, batch_b, batch_out;
    int64_t align;
    int32_t accumulation, numerics;
    uint32_t flags;
    uint32_t given; /* options, a bit each: twice is once too often */
    bool is_family;
};

/* Where reading stands; `text` only for messages. */
struct reader {
    const char *text, *at;
};

static fp8r_status reject(const struct reader *reader, const char *expected)
{
    return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "problem \"%.80s\", position %d: expected %s", reader->text,
                     (int)(reader->at - reader->text) + 1, expected);
}

static bool read_number(struct reader *reader, int64_t *number)
{
    const char *at = reader->at;
    int64_t value = 0;
    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!fp8r_size_mul(value, 10, &value) || !fp8r_size_add(value, *at - '0', &value))
            return false;
    reader->at = at;
    *number = value;
    return true;
}

/* What stands where a number should: something else, or one that 63 bits do not hold. */
static fp8r_status reject_number(const struct reader *reader, const char *expected)
{
    struct reader ahead = *reader;
    int64_t number;
    if (*ahead.at < '0' || *ahead.at > '9' || read_number(&ahead, &number))
        return reject(reader, expected);
    return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "problem \"%.80s\", position %d: the number is too large, %lld is the largest",
                     reader->text, (int)(reader->at - reader->text) + 1, (long long)INT64_MAX);
}

static bool read_char(struct reader *reader, char wanted)
{
    if (*reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

/* A word of the list; returns its index or -1. */
static int read_word(struct reader *reader, const char *const *words)
{
    size_t length = strcspn(reader->at, ":=");
    for (int i = 0; words[i]; i++) {
        if (strlen(words[i]) == length && strncmp(words[i], reader->at, length) == 0) {
            reader->at += length;
            return i;
        }
    }
    return -1;
}

static const char *const dtype_words[] = {"none", "e4m3", "e5m2", "bf16", "fp16", "fp32", NULL};
static const char *const scale_words[] = {"none", "tensor", "batch", "row", NULL};

static fp8r_status read_dtype(struct reader *reader, int low, int high, const char *expected, int32_t *dtype)
{
    struct reader ahead = *reader;
    int word = read_word(&ahead, dtype_words);
    if (word < low || word > high)
        return reject(reader, expected);
    *reader = ahead;
    *dtype = word;
    return FP8R_OK;
}

static fp8r_status read_scale(struct reader *reader, int32_t *kind)
{
    int word = read_word(reader, scale_words);
    if (word < 0)
        return reject(reader, "none, tensor, row or batch");
    *kind = word;
    return FP8R_OK;
}

/* A stride: a number, or in a family the word that stands for its class. */
static fp8r_status read_stride(struct reader *reader, const struct draft *draft, const char *family_word, int64_t *stride)
{
    size_t length = strlen(family_word);
    if (draft->is_family && strncmp(reader->at, family_word, length) == 0) {
        reader->at += length;
        *stride = PAD;
        return FP8R_OK;
    }
    return read_number(reader, stride) ? FP8R_OK : reject_number(reader, "a number of elements");
}

static fp8r_status read_align(struct reader *reader, struct draft *draft)
{
    struct reader start = *reader;
    if (!read_number(reader, &draft->align) || draft->align < 1 || draft->align > 256 ||
        (draft->align & (draft->align - 1)) != 0)
        return reject(&start, "a power of two from 1 to 256");
    return FP8R_OK;
}

static fp8r_status read_valued(struct reader *reader, const char *name, struct draft *draft)
{
    const struct {
        const char *name, *family_word;
        int64_t *stride;
    } strides[] = {{"lda", "pad", &draft->pitch_a},   {"ldb", "pad", &draft->pitch_b}, {"ldo", "pad", &draft->pitch_out},
                   {"ia", "any", &draft->inner_a},    {"ib", "any", &draft->inner_b},  {"io", "any", &draft->inner_out},
                   {"ba", "\n", &draft->batch_a},     {"bb", "\n", &draft->batch_b},   {"bo", "\n", &draft->batch_out}};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (strcmp(strides[i].name, name) == 0)
            return read_stride(reader, draft, strides[i].family_word, strides[i].stride);
    if (strcmp(name, "sa") == 0)
        return read_scale(reader, &draft->scale_a);
    if (strcmp(name, "sb") == 0)
        return read_scale(reader, &draft->scale_b);
    if (strcmp(name, "bias") == 0)
        return read_dtype(reader, FP8R_DTYPE_BF16, FP8R_DTYPE_FP32, "bf16, fp16 or fp32", &draft->bias);
    if (strcmp(name, "a") == 0)
        return read_dtype(reader, FP8R_DTYPE_E4M3, FP8R_DTYPE_FP16, "e4m3, e5m2, bf16 or fp16", &draft->a);
    return read_align(reader, draft);
}

static void apply_plain(int word, struct draft *draft)
{
    enum { BF16, FP16, FP32, TENSOR, BIAS, PRECISE, INVARIANT, STATIC, TA, TB, TO };
    switch (word) {
    case BF16:
    case FP16:
    case FP32:
        draft->out = FP8R_DTYPE_BF16 + word;
        break;
    case TENSOR:
        draft->is_tensor = true;
        break;
    case BIAS:
        draft->has_bias = true;
        break;
    case PRECISE:
        draft->accumulation = FP8R_ACCUMULATE_PRECISE;
        break;
    case INVARIANT:
        draft->numerics = FP8R_NUMERICS_BATCH_INVARIANT;
        break;
    case STATIC:
        draft->flags |= FP8R_WEIGHTS_STATIC;
        break;
    case TA:
        draft->outer_a = true;
        break;
    case TB:
        draft->outer_b = true;
        break;
    default:
        draft->outer_out = true;
    }
}

enum { PLAIN_OUT_TYPES = 3, PLAIN_BIAS = 4, PLAIN_COUNT = 11 };

/* An option that was given before, or whose place another took, would be passed over. */
static fp8r_status take(const struct reader *start, int option, struct draft *draft)
{
    const uint32_t bit = UINT32_C(1) << option;
    if (draft->given & bit)
        return reject(start, "another option: this one, or one in its place, was given before");
    draft->given |= bit;
    return FP8R_OK;
}

static fp8r_status read_option(struct reader *reader, struct draft *draft)
{
    static const char *const plain[] = {"bf16",      "fp16",   "fp32", "tensor", "bias", "precise",
                                        "invariant", "static", "ta",   "tb",     "to",   NULL};
    static const char *const valued[] = {"lda", "ldb", "ldo", "ia", "ib", "io",    "ba",
                                         "bb",  "bo",  "sa",  "sb", "a",  "align", "bias", NULL};
    struct reader start = *reader, ahead = *reader;
    int word = read_word(&ahead, valued);
    if (word >= 0 && read_char(&ahead, '=')) {
        bool is_bias = strcmp(valued[word], "bias") == 0;
        FP8R_TRY(take(&start, is_bias ? PLAIN_BIAS : PLAIN_COUNT + word, draft));
        *reader = ahead;
        draft->has_bias |= is_bias;
        return read_valued(reader, valued[word], draft);
    }
    word = read_word(reader, plain);
    if (word < 0)
        return reject(&start, "one of bf16 fp16 fp32 tensor bias precise invariant static ta tb to, or NAME=VALUE with a "
                              "NAME of lda ldb ldo ia ib io ba bb bo sa sb a align bias");
    FP8R_TRY(take(&start, word < PLAIN_OUT_TYPES ? 0 : word, draft));
    apply_plain(word, draft);
    return FP8R_OK;
}

static fp8r_status read_sizes(struct reader *reader, struct draft *draft)
{
    struct reader ahead = *reader;
    draft->batch = 1;
    if (read_number(&ahead, &draft->batch) && read_char(&ahead, '*'))
        *reader = ahead;
    else
        draft->batch = 1;
    if (draft->is_family) {
        if (!read_char(reader, 'M'))
            return reject_number(reader, "the letter M (a family: [B*]MxNxK)");
    } else if (!read_number(reader, &draft->m)) {
        return reject_number(reader, "a whole number of rows (a problem: [B*]MxNxK[:option]...)");
    }
    if (!read_char(reader, 'x'))
        return reject(reader, "x between M and N");
    if (!read_number(reader, &draft->n))
        return reject_number(reader, "a whole number N");
    if (!read_char(reader, 'x'))
        return reject(reader, "x between N and K");
    return read_number(reader, &draft->k) ? FP8R_OK : reject_number(reader, "a whole number K");
}

static fp8r_status read_draft(const char *text, bool is_family, int64_t m, struct draft *draft)
{
    struct reader reader = {text, text};
    *draft = (struct draft){
        .m = m,           .a = FP8R_DTYPE_E4M3, .out = FP8R_DTYPE_BF16, .bias = UNSET,      .scale_a = UNSET,
        .scale_b = UNSET, .pitch_a = UNSET,     .pitch_b = UNSET,       .pitch_out = UNSET, .inner_a = UNSET,
        .inner_b = UNSET, .inner_out = UNSET,   .batch_a = UNSET,       .batch_b = UNSET,   .batch_out = UNSET,
        .align = 256,     .is_family = is_family};
    FP8R_TRY(read_sizes(&reader, draft));
    while (read_char(&reader, ':'))
        FP8R_TRY(read_option(&reader, draft));
    return *reader.at == '\0' ? FP8R_OK : reject(&reader, "':' and an option, or the end");
}

/* rows x cols with the draft's strides. 16 elements of padding keep a family's pitch as aligned as packed lines were. */
static fp8r_status place(fp8r_matrix *matrix, bool inner_is_col, bool outer_first, int64_t pitch, int64_t inner,
                         int64_t batch_stride)
{
    bool contiguous_col = inner_is_col != outer_first;
    int64_t line = contiguous_col ? matrix->cols : matrix->rows, lines = contiguous_col ? matrix->rows : matrix->cols;
    int64_t any = lines > 1 ? 16 : 0; /* a single line is of the strided class only where it repeats one element */
    int64_t step = inner == PAD ? any : inner == UNSET ? 1 : inner, padded = 0;
    if (!fp8r_size_mul(line, step, &padded) || !fp8r_size_add(padded, 32, &padded))
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "problem: an operand of these sizes has more elements than 63 bits count");
    int64_t packed = padded - 32;
    if (inner == PAD && line == 1) /* and lines of one element where they repeat it */
        packed = 0;
    pitch = pitch == PAD ? fp8r_size_round_up(packed + 1, 16) : pitch == UNSET ? packed : pitch;
    matrix->col_stride = contiguous_col ? step : pitch;
    matrix->row_stride = contiguous_col ? pitch : step;
    if (!fp8r_size_mul(pitch, lines, &padded))
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "problem: an operand of these sizes has more elements than 63 bits count");
    matrix->batch_stride = batch_stride != UNSET ? batch_stride : padded;
    return FP8R_OK;
}

/* Of an empty product nothing is touched, so an operand that fits in no memory is no fault: its lines then lie upon each
 * other. `placed`: what became of the operand so far. */
static fp8r_status fit(const struct draft *draft, fp8r_status placed, fp8r_matrix *matrix)
{
    bool is_empty = draft->batch == 0 || draft->m == 0 || draft->n == 0;
    if (!is_empty || (placed == FP8R_OK && fp8r_matrix_check("problem", matrix) == FP8R_OK))
        return placed;
    matrix->batch_stride = matrix->row_stride = matrix->col_stride = 0;
    fp8r_error_clear();
    return FP8R_OK;
}

static fp8r_matrix scale_matrix(int32_t kind, int64_t batch, int64_t rows, int64_t cols)
{
    if (kind == FP8R_SCALE_NONE)
        return (fp8r_matrix){0};
    bool per_row = kind == FP8R_SCALE_ROW;
    fp8r_matrix matrix = {.dtype = FP8R_DTYPE_FP32, .batch = kind == FP8R_SCALE_TENSOR ? 1 : batch,
                          .rows = per_row ? rows : 1, .cols = per_row ? cols : 1};
    matrix.row_stride = cols == 1 ? 1 : cols;
    matrix.col_stride = 1;
    matrix.batch_stride = per_row ? rows * cols : 1;
    return matrix;
}

static void set_align(fp8r_matmul *matmul, int64_t align)
{
    fp8r_matrix *matrices[3] = {&matmul->a, &matmul->b, &matmul->out};
    for (int i = 0; i < 3; i++)
        matrices[i]->data = (void *)(uintptr_t)fp8r_size_max(align, fp8r_dtype_bytes(matrices[i]->dtype));
}

static fp8r_status finish(const struct draft *draft, fp8r_matmul *matmul)
{
    int32_t fallback = draft->is_tensor ? FP8R_SCALE_TENSOR : FP8R_SCALE_ROW;
    int32_t fallback_a = fp8r_dtype_is_half(draft->a) ? FP8R_SCALE_NONE : fallback;
    int32_t scale_a = draft->scale_a == UNSET ? fallback_a : draft->scale_a;
    int32_t scale_b = draft->scale_b == UNSET ? fallback : draft->scale_b;
    fp8r_matmul made = {.struct_size = sizeof made};
    int64_t batch = draft->batch;
    made.a = (fp8r_matrix){.dtype = draft->a, .batch = batch, .rows = draft->m, .cols = draft->k};
    made.b = (fp8r_matrix){.dtype = FP8R_DTYPE_E4M3, .batch = batch, .rows = draft->k, .cols = draft->n};
    made.out = (fp8r_matrix){.dtype = draft->out, .batch = batch, .rows = draft->m, .cols = draft->n};
    FP8R_TRY(fit(draft, place(&made.a, true, draft->outer_a, draft->pitch_a, draft->inner_a, draft->batch_a), &made.a));
    FP8R_TRY(fit(draft, place(&made.b, false, draft->outer_b, draft->pitch_b, draft->inner_b, draft->batch_b), &made.b));
    FP8R_TRY(fit(draft,
                 place(&made.out, true, draft->outer_out, draft->pitch_out, draft->inner_out, draft->batch_out),
                 &made.out));
    made.scale_a = scale_matrix(scale_a, batch, draft->m, 1);
    made.scale_b = scale_matrix(scale_b, batch, 1, draft->n);
    if (draft->has_bias) {
        made.bias = scale_matrix(FP8R_SCALE_ROW, batch, 1, draft->n);
        made.bias.dtype = draft->bias == UNSET ? draft->out : draft->bias;
    }
    fp8r_matrix *extras[3] = {&made.scale_a, &made.scale_b, &made.bias};
    for (int i = 0; i < 3; i++)
        FP8R_TRY(fit(draft, FP8R_OK, extras[i]));
    if (draft->align < 256) /* no data, but pointers of this alignment and no better */
        set_align(&made, draft->align);
    made.accumulation = draft->accumulation;
    made.numerics = draft->numerics;
    made.flags = draft->flags;
    struct fp8r_product product;
    FP8R_TRY(fp8r_product_init(&made, FP8R_DATA_IGNORED, &product));
    *matmul = made;
    return FP8R_OK;
}

static fp8r_status parse(const char *text, bool is_family, int64_t m, fp8r_matmul *matmul)
{
    struct draft draft;
    if (!text)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "text is NULL");
    if (!matmul)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "matmul is NULL");
    FP8R_TRY(read_draft(text, is_family, m, &draft));
    return finish(&draft, matmul);
}

fp8r_status fp8r_matmul_parse(const char *text, fp8r_matmul *matmul)
{
    return parse(text, false, 0, matmul);
}

fp8r_status fp8r_family_member(const char *text, int64_t m, fp8r_matmul *matmul)
{
    return parse(text, true, m, matmul);
}

fp8r_status fp8r_family_parse(const char *text, int mode, struct fp8r_key *key)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    FP8R_TRY(parse(text, true, FAMILY_ROWS, &matmul));
    FP8R_TRY(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product));
    fp8r_key_init(&product.problem, mode, key);
    return FP8R_OK;
}
