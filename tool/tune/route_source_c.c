/* The C form: tables and a lookup of standard C11, which C++ takes as well.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/route_source.h"

static const char declarations[] =
    "#include <stddef.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "\n"
    "struct $_choice {\n"
    "    const char *backend, *config, *source; /* config: NULL for the backend's own pick */\n"
    "};\n"
    "\n"
    "/* The kind of a family by its options, e.g. \":fp16:tensor\"; -1 where none of that kind was measured. */\n"
    "int $_kind(const char *options);\n"
    "\n"
    "/* 1 and the choice, or 0: no route. */\n"
    "int $(int kind, int64_t batch, int64_t m, int64_t n, int64_t k, struct $_choice *choice);\n"
    "\n"
    "static const struct $_kind {\n"
    "    const char *options;\n"
    "    int align;           /* the most that counts */\n"
    "    int layout, one_row; /* into $_layouts; one_row: of products of one row, -1: not measured */\n"
    "} $_kinds[] = {\n";

static const char layouts_head[] =
    "};\n"
    "\n"
    "static const struct $_layout {\n"
    "    int m_bytes, n_bytes, k_bytes; /* pitches, by their extent; 0: none */\n"
    "} $_layouts[] = {\n";

static const char segments_head[] =
    "};\n"
    "\n"
    "static const struct $_segment {\n"
    "    int64_t first, last; /* rows */\n"
    "    const char *backend, *config;\n"
    "    int is_clear;\n"
    "} $_segments[] = {\n";

static const char families_head[] =
    "};\n"
    "\n"
    "static const struct $_family {\n"
    "    int layout, align;\n"
    "    int64_t batch, n, k;\n"
    "    size_t segment, segment_count; /* into $_segments */\n"
    "    const char *beyond; /* what also serves more rows than were measured; NULL: not known */\n"
    "} $_families[] = { /* ascending */\n";

static const char lookup[] =
    "};\n"
    "\n"
    "enum { $_KINDS = sizeof $_kinds / sizeof *$_kinds, $_FAMILIES = sizeof $_families / sizeof *$_families };\n"
    "\n"
    "int $_kind(const char *options)\n"
    "{\n"
    "    for (int i = 0; i < $_KINDS; i++)\n"
    "        if (strcmp($_kinds[i].options, options) == 0)\n"
    "            return i;\n"
    "    return -1;\n"
    "}\n"
    "\n"
    "static int $_limit(int align, int64_t extent, int bytes)\n"
    "{\n"
    "    while (bytes > 0 && extent != 1 && extent % align * bytes % align != 0)\n"
    "        align /= 2;\n"
    "    return align;\n"
    "}\n"
    "\n"
    "/* What starts of lines have in common, up to 16 bytes. */\n"
    "static int $_align(const struct $_layout *layout, int align, int64_t m, int64_t n, int64_t k)\n"
    "{\n"
    "    align = $_limit(align, m, layout->m_bytes);\n"
    "    return $_limit($_limit(align, n, layout->n_bytes), k, layout->k_bytes);\n"
    "}\n"
    "\n"
    "static int $_order(const struct $_family *family, int layout, int align, int64_t batch, int64_t n, int64_t k)\n"
    "{\n"
    "    if (family->layout != layout)\n"
    "        return family->layout < layout ? -1 : 1;\n"
    "    if (family->align != align)\n"
    "        return family->align < align ? -1 : 1;\n"
    "    if (family->batch != batch)\n"
    "        return family->batch < batch ? -1 : 1;\n"
    "    if (family->n != n)\n"
    "        return family->n < n ? -1 : 1;\n"
    "    return family->k < k ? -1 : family->k > k;\n"
    "}\n"
    "\n"
    "static const struct $_family *$_find(int layout, int align, int64_t batch, int64_t n, int64_t k)\n"
    "{\n"
    "    size_t low = 0, high = $_FAMILIES;\n"
    "    while (low < high) {\n"
    "        size_t middle = low + (high - low) / 2;\n"
    "        if ($_order(&$_families[middle], layout, align, batch, n, k) < 0)\n"
    "            low = middle + 1;\n"
    "        else\n"
    "            high = middle;\n"
    "    }\n"
    "    return low < $_FAMILIES && $_order(&$_families[low], layout, align, batch, n, k) == 0 ? &$_families[low] : NULL;\n"
    "}\n"
    "\n"
    "static const struct $_segment *$_at(const struct $_family *family, int64_t m)\n"
    "{\n"
    "    for (size_t i = 0; i < family->segment_count; i++) {\n"
    "        const struct $_segment *segment = &$_segments[family->segment + i];\n"
    "        if (segment->first <= m && m <= segment->last)\n"
    "            return segment;\n"
    "    }\n"
    "    return NULL;\n"
    "}\n"
    "\n"
    "/* The backend that the nearest families on both sides, in n or in k, both clearly name at this m. */\n"
    "static const char *$_between(int layout, int align, int64_t batch, int64_t m, int64_t n, int64_t k, int in_n)\n"
    "{\n"
    "    int64_t at = in_n ? n : k, lowest = at - at / 3, highest = at > INT64_MAX - at / 2 ? INT64_MAX : at + at / 2;\n"
    "    const struct $_family *below = NULL, *above = NULL;\n"
    "    for (int i = 0; i < $_FAMILIES; i++) {\n"
    "        const struct $_family *family = &$_families[i];\n"
    "        int64_t extent = in_n ? family->n : family->k;\n"
    "        if (family->layout != layout || family->align != align || family->batch != batch)\n"
    "            continue;\n"
    "        if (in_n ? family->k != k : family->n != n)\n"
    "            continue;\n"
    "        if (lowest <= extent && extent < at)\n"
    "            below = family;\n"
    "        else if (at < extent && extent <= highest && !above)\n"
    "            above = family;\n"
    "    }\n"
    "    if (!below || !above)\n"
    "        return NULL;\n"
    "    const struct $_segment *one = $_at(below, m), *other = $_at(above, m);\n"
    "    if (!one || !other || !one->is_clear || !other->is_clear || strcmp(one->backend, other->backend) != 0)\n"
    "        return NULL;\n"
    "    return one->backend;\n"
    "}\n"
    "\n"
    "static int $_choose(struct $_choice *choice, const char *backend, const char *config, const char *source)\n"
    "{\n"
    "    choice->backend = backend;\n"
    "    choice->config = config;\n"
    "    choice->source = source;\n"
    "    return 1;\n"
    "}\n"
    "\n"
    "int $(int kind, int64_t batch, int64_t m, int64_t n, int64_t k, struct $_choice *choice)\n"
    "{\n"
    "    if (kind < 0 || kind >= $_KINDS || m < 1 || n < 1 || k < 1)\n"
    "        return 0;\n"
    "    int layout = m == 1 ? $_kinds[kind].one_row : $_kinds[kind].layout;\n"
    "    if (layout < 0)\n"
    "        return 0;\n"
    "    int align = $_align(&$_layouts[layout], $_kinds[kind].align, m, n, k);\n"
    "    const struct $_family *family = $_find(layout, align, batch, n, k);\n"
    "    const struct $_segment *segment = family ? $_at(family, m) : NULL;\n"
    "    if (segment)\n"
    "        return $_choose(choice, segment->backend, segment->config, \"route\");\n"
    "    if (family && family->beyond && m > $_segments[family->segment + family->segment_count - 1].last)\n"
    "        return $_choose(choice, family->beyond, NULL, \"extrapolated\");\n"
    "    const char *between = $_between(layout, align, batch, m, n, k, 1);\n"
    "    if (!between)\n"
    "        between = $_between(layout, align, batch, m, n, k, 0);\n"
    "    return between ? $_choose(choice, between, NULL, \"neighbour\") : 0;\n"
    "}\n";

/* Names in files are letters, digits and "_.=-": nothing to escape. The smallest 64-bit number does not occur. */
static void print_segments(const struct fp8r_export_family *family, FILE *stream)
{
    fprintf(stream, "    /* %s */\n", family->text);
    for (int i = 0; i < family->entry->segment_count; i++) {
        const struct fp8r_segment *it = &family->entry->segments[i];
        fprintf(stream, "    {INT64_C(%lld), INT64_C(%lld), \"%s\", \"%s\", %d},\n", (long long)it->m_first,
                (long long)it->m_last, it->backend, it->config, it->is_clear);
    }
}

static void print_family(const struct fp8r_export_family *family, size_t segment, FILE *stream)
{
    const struct fp8r_key *key = &family->entry->key;
    const char *quote = family->beyond ? "\"" : "";
    fprintf(stream, "    {%d, %d, INT64_C(%lld), INT64_C(%lld), INT64_C(%lld), %zu, %d, %s%s%s},\n", family->layout,
            key->align_bytes, (long long)key->batch, (long long)key->n, (long long)key->k, segment,
            family->entry->segment_count, quote, family->beyond ? family->beyond : "NULL", quote);
}

static void print_kinds(const struct fp8r_export *source, FILE *stream)
{
    for (int i = 0; i < source->kind_count; i++)
        fprintf(stream, "    {\"%s\", %d, %d, %d},\n", source->kinds[i].options, source->kinds[i].align,
                source->kinds[i].layout, source->kinds[i].one_row);
    fp8r_export_print(source, stream, layouts_head);
    for (int i = 0; i < source->layout_count; i++)
        fprintf(stream, "    {%d, %d, %d}, /* \"%s\" */\n", source->layouts[i].m_bytes, source->layouts[i].n_bytes,
                source->layouts[i].k_bytes, source->layouts[i].options);
}

void fp8r_export_print_c(const struct fp8r_export *source, FILE *stream)
{
    size_t segment = 0;
    fprintf(stream, "/* Backends for FP8 matrix products by their sizes, as measured.\n *\n");
    fp8r_export_print_head(source, stream, " * ");
    fprintf(stream, " */\n");
    fp8r_export_print(source, stream, declarations);
    print_kinds(source, stream);
    fp8r_export_print(source, stream, segments_head);
    for (size_t i = 0; i < source->count; i++)
        print_segments(source->families[i], stream);
    fp8r_export_print(source, stream, families_head);
    for (size_t i = 0; i < source->count; i++) {
        print_family(source->families[i], segment, stream);
        segment += (size_t)source->families[i]->entry->segment_count;
    }
    fp8r_export_print(source, stream, lookup);
}
