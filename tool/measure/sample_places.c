/* Choosing the sample.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/sample_places.h"

#include <stdlib.h>

#include "base/sizes.h"
#include "measure/random.h"

/* A tile of 128 is the usual unit of work; its corners are where an off-by-one shows. */
enum { CORNER_TILE = 128, SMALLEST_TILE = 16 };

struct sample {
    struct fp8r_place *places;
    size_t count;
    struct fp8r_random random;
    int64_t batch, rows, cols, wanted;
};

static int compare(const void *a, const void *b)
{
    const struct fp8r_place *x = a, *y = b;
    if (x->batch != y->batch) return x->batch < y->batch ? -1 : 1;
    if (x->col != y->col) return x->col < y->col ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void add(struct sample *sample, int64_t batch, int64_t row, int64_t col)
{
    sample->places[sample->count++] = (struct fp8r_place){batch, row, col};
}

/* One place a tile: tiles so large that there are at most twice as many as wanted. */
static int64_t tiles_max(const struct sample *sample)
{
    return 2 * sample->wanted;
}

static int64_t tile_of(const struct sample *sample)
{
    int64_t tile = SMALLEST_TILE;
    while ((double)fp8r_size_blocks(sample->rows, tile) * (double)fp8r_size_blocks(sample->cols, tile) *
                   (double)sample->batch >
               (double)tiles_max(sample) &&
           tile < INT64_MAX / 4)
        tile *= 2;
    return tile;
}

static int64_t within(struct fp8r_random *random, int64_t from, int64_t size, int64_t end)
{
    return from + fp8r_random_below(random, fp8r_size_min(size, end - from));
}

/* One place in every tile. Of more batch items than that, some. */
static void add_tiles(struct sample *sample)
{
    int64_t tile = tile_of(sample), items = fp8r_size_min(sample->batch, tiles_max(sample));
    for (int64_t i = 0; i < items; i++) {
        int64_t batch = items == sample->batch ? i : fp8r_random_below(&sample->random, sample->batch);
        for (int64_t r = 0; r < sample->rows; r += fp8r_size_min(tile, sample->rows - r))
            for (int64_t c = 0; c < sample->cols; c += fp8r_size_min(tile, sample->cols - c))
                add(sample, batch, within(&sample->random, r, tile, sample->rows),
                    within(&sample->random, c, tile, sample->cols));
    }
}

/* The first or last line of a random tile. */
static int64_t corner(struct fp8r_random *random, int64_t extent)
{
    int64_t at = fp8r_random_below(random, fp8r_size_blocks(extent, CORNER_TILE)) * CORNER_TILE;
    bool is_last = fp8r_random_next(random) & 1;
    return is_last ? fp8r_size_min(at + CORNER_TILE, extent) - 1 : at;
}

/* A quarter of what is wanted at corners, an eighth each in the last row and the last column. */
static void add_edges(struct sample *sample)
{
    struct fp8r_random *random = &sample->random;
    for (int64_t i = 0; i < sample->wanted / 4; i++)
        add(sample, fp8r_random_below(random, sample->batch), corner(random, sample->rows),
            corner(random, sample->cols));
    for (int64_t i = 0; i < sample->wanted / 8; i++) {
        add(sample, fp8r_random_below(random, sample->batch), sample->rows - 1,
            fp8r_random_below(random, sample->cols));
        add(sample, fp8r_random_below(random, sample->batch), fp8r_random_below(random, sample->rows),
            sample->cols - 1);
    }
}

/* Random places, where tiles gave less than wanted; twice that, because some coincide. */
static void add_rest(struct sample *sample)
{
    for (int64_t i = (int64_t)sample->count < sample->wanted ? 0 : 2 * sample->wanted; i < 2 * sample->wanted;
         i++)
        add(sample, fp8r_random_below(&sample->random, sample->batch),
            fp8r_random_below(&sample->random, sample->rows),
            fp8r_random_below(&sample->random, sample->cols));
}

/* Equal places are neighbours after sorting. */
static void sort_unique(struct sample *sample)
{
    size_t kept = 0;
    qsort(sample->places, sample->count, sizeof *sample->places, compare);
    for (size_t i = 0; i < sample->count; i++)
        if (kept == 0 || compare(&sample->places[kept - 1], &sample->places[i]) != 0)
            sample->places[kept++] = sample->places[i];
    sample->count = kept;
}

static void add_all(struct sample *sample)
{
    for (int64_t i = 0; i < sample->batch; i++)
        for (int64_t c = 0; c < sample->cols; c++)
            for (int64_t r = 0; r < sample->rows; r++)
                add(sample, i, r, c);
}

struct fp8r_place *fp8r_sample_places(int64_t batch, int64_t rows, int64_t cols, int64_t wanted,
                                      uint64_t seed, size_t *count)
{
    struct sample sample = {.random = {seed}, .batch = batch, .rows = rows, .cols = cols, .wanted = wanted};
    int64_t all = 0;
    bool takes_all = fp8r_size_mul(batch, rows, &all) && fp8r_size_mul(all, cols, &all) && all <= 4 * wanted;
    size_t room = takes_all ? (size_t)all : (size_t)(5 * wanted); /* tiles 2, edges 1/2, rest 2 */
    sample.places = malloc((room ? room : 1) * sizeof *sample.places);
    if (!sample.places) return NULL;
    if (takes_all) {
        add_all(&sample);
    } else {
        add_tiles(&sample);
        add_rest(&sample);
        add_edges(&sample);
        sort_unique(&sample);
    }
    *count = sample.count;
    return sample.places;
}
