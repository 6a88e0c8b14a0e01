/* A route file from a stranger: parse it, and where it parses, write it, read that again and write it once more. Both
 * texts must be equal, entries sorted and segments in order, whatever the file held.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fp8route/fp8route.h>

#include "fuzz_file.h"
#include "route/route_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void segments_check(const struct fp8r_entry *entry)
{
    if (entry->segment_count < 1)
        abort();
    for (int i = 0; i < entry->segment_count; i++) {
        const struct fp8r_segment *segment = &entry->segments[i];
        int64_t before = i > 0 ? entry->segments[i - 1].m_last : 0;
        if (segment->m_first <= before || segment->m_last < segment->m_first || !(segment->median_us > 0) ||
            !(segment->gain_low <= segment->gain_high))
            abort();
        if (fp8r_entry_segment(entry, segment->m_first) != segment ||
            fp8r_entry_segment(entry, segment->m_last) != segment)
            abort();
    }
}

static void table_check(const struct fp8r_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct fp8r_entry *entry = &table->entries[i];
        if (i > 0 && fp8r_key_compare(&table->entries[i - 1].key, &entry->key) >= 0)
            abort();
        if (fp8r_table_find(table, &entry->key) != entry)
            abort();
        segments_check(entry);
    }
}

static char *written(struct fp8r_route_file *file)
{
    char *text = NULL;
    table_check(&file->table);
    if (fp8r_route_file_format(file, &text) != FP8R_OK)
        abort();
    fp8r_route_file_fini(file);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp8r_route_file file;
    fp8r_status status = fp8r_route_file_parse("fuzz", (const char *)data, size, &file);
    if (fuzz_wants_file(data, size)) { /* and a file of the same bytes is answered the same */
        struct fp8r_route_file read;
        if (fp8r_route_file_read(fuzz_file(data, size), &read) != status)
            abort();
        if (status == FP8R_OK)
            fp8r_route_file_fini(&read);
    }
    if (status != FP8R_OK) {
        const char *line = fp8r_last_error();
        if (status != FP8R_ERROR_FORMAT || strncmp(line, "fuzz", 4) != 0 || strchr(line, '\n'))
            if (!fuzz_wants_file(data, size))
                abort();
        return 0;
    }
    char *one = written(&file);
    if (fp8r_route_file_parse("again", one, strlen(one), &file) != FP8R_OK)
        abort();
    char *other = written(&file);
    if (strcmp(one, other) != 0)
        abort();
    free(one);
    free(other);
    return 0;
}
