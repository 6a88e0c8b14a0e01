/* The Python form: dictionaries and a lookup, no imports.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tune/route_source.h"

static const char kinds_head[] =
    "\n"
    "# options -> the most that counts as alignment, layout, and the layout of products of one row (None: not measured)\n"
    "_$_KINDS = {\n";

static const char layouts_head[] =
    "}\n"
    "\n"
    "# layout -> bytes of pitches by their extent: m, n, k (0: none)\n"
    "_$_LAYOUTS = [\n";

static const char families_head[] =
    "]\n"
    "\n"
    "# layout, alignment -> (batch, n, k) -> what also serves more rows than were measured (None: not known), and the measured\n"
    "# rows: first, last, backend, config, clear\n"
    "_$_FAMILIES = {\n";

static const char lookup[] =
    "}\n"
    "\n"
    "\n"
    "def _$_align(layout, align, m, n, k):\n"
    "    \"\"\"What starts of lines have in common, up to 16 bytes.\"\"\"\n"
    "    for size, extent in zip(_$_LAYOUTS[layout], (m, n, k)):\n"
    "        while size and extent != 1 and extent * size % align:\n"
    "            align //= 2\n"
    "    return align\n"
    "\n"
    "\n"
    "def _$_at(family, m):\n"
    "    for segment in family[1]:\n"
    "        if segment[0] <= m <= segment[1]:\n"
    "            return segment\n"
    "    return None\n"
    "\n"
    "\n"
    "def _$_between(families, batch, m, n, k, axis):\n"
    "    \"\"\"The backend that the nearest families on both sides both clearly name at this m. axis: 1 is n, 2 is k.\"\"\"\n"
    "    wanted = (batch, n, k)\n"
    "    at = wanted[axis]\n"
    "    below = above = None\n"
    "    for sizes in families:\n"
    "        if any(sizes[i] != wanted[i] for i in range(3) if i != axis):\n"
    "            continue\n"
    "        if at - at // 3 <= sizes[axis] < at:\n"
    "            below = sizes if below is None else max(below, sizes)\n"
    "        elif at < sizes[axis] <= at + at // 2:\n"
    "            above = sizes if above is None else min(above, sizes)\n"
    "    if below is None or above is None:\n"
    "        return None\n"
    "    one, other = _$_at(families[below], m), _$_at(families[above], m)\n"
    "    if one is None or other is None or not one[4] or not other[4] or one[2] != other[2]:\n"
    "        return None\n"
    "    return one[2]\n"
    "\n"
    "\n"
    "def $(options, batch, m, n, k):\n"
    "    \"\"\"(backend, config, source), config None for the backend's own pick; or None: no route.\"\"\"\n"
    "    align, layout, one_row = _$_KINDS.get(options, (16, None, None))\n"
    "    if m == 1:\n"
    "        layout = one_row\n"
    "    if layout is None or min(m, n, k) < 1:\n"
    "        return None\n"
    "    families = _$_FAMILIES.get((layout, _$_align(layout, align, m, n, k)), {})\n"
    "    family = families.get((batch, n, k))\n"
    "    segment = _$_at(family, m) if family else None\n"
    "    if segment:\n"
    "        return segment[2], segment[3], \"route\"\n"
    "    if family and family[0] and m > family[1][-1][1]:\n"
    "        return family[0], None, \"extrapolated\"\n"
    "    for axis in (1, 2):\n"
    "        backend = _$_between(families, batch, m, n, k, axis)\n"
    "        if backend:\n"
    "            return backend, None, \"neighbour\"\n"
    "    return None\n";

static void print_kinds(const struct fp8r_export *source, FILE *stream)
{
    fp8r_export_print(source, stream, kinds_head);
    for (int i = 0; i < source->kind_count; i++) {
        const struct fp8r_export_kind *kind = &source->kinds[i];
        char one_row[16] = "None";
        if (kind->one_row >= 0)
            snprintf(one_row, sizeof one_row, "%d", kind->one_row);
        fprintf(stream, "    \"%s\": (%d, %d, %s),\n", kind->options, kind->align, kind->layout, one_row);
    }
    fp8r_export_print(source, stream, layouts_head);
    for (int i = 0; i < source->layout_count; i++)
        fprintf(stream, "    (%d, %d, %d),  # \"%s\"\n", source->layouts[i].m_bytes, source->layouts[i].n_bytes,
                source->layouts[i].k_bytes, source->layouts[i].options);
}

static void print_family(const struct fp8r_export_family *family, FILE *stream)
{
    const struct fp8r_key *key = &family->entry->key;
    const char *quote = family->beyond ? "\"" : "";
    fprintf(stream, "        (%lld, %lld, %lld): (%s%s%s, (\n", (long long)key->batch, (long long)key->n,
            (long long)key->k, quote, family->beyond ? family->beyond : "None", quote);
    for (int i = 0; i < family->entry->segment_count; i++) {
        const struct fp8r_segment *it = &family->entry->segments[i];
        fprintf(stream, "            (%lld, %lld, \"%s\", \"%s\", %s),\n", (long long)it->m_first, (long long)it->m_last,
                it->backend, it->config, it->is_clear ? "True" : "False");
    }
    fprintf(stream, "        )),\n");
}

void fp8r_export_print_python(const struct fp8r_export *source, FILE *stream)
{
    int layout = -1, align = 0;
    fprintf(stream, "# Backends for FP8 matrix products by their sizes, as measured.\n#\n");
    fp8r_export_print_head(source, stream, "# ");
    print_kinds(source, stream);
    fp8r_export_print(source, stream, families_head);
    for (size_t i = 0; i < source->count; i++) {
        const struct fp8r_export_family *family = source->families[i];
        if (family->layout != layout || family->entry->key.align_bytes != align)
            fprintf(stream, "%s    (%d, %d): {\n", i > 0 ? "    },\n" : "", family->layout,
                    family->entry->key.align_bytes);
        layout = family->layout;
        align = family->entry->key.align_bytes;
        print_family(family, stream);
    }
    fprintf(stream, "    },\n");
    fp8r_export_print(source, stream, lookup);
}
