/* SHA-256: the published examples of FIPS 180-4, lengths around a block, and any split of the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

static void digest_hex(const void *data, size_t size, size_t piece, char text[65])
{
    struct fp8r_sha256 hash;
    unsigned char digest[32];
    fp8r_sha256_init(&hash);
    for (size_t at = 0; at < size; at += piece)
        fp8r_sha256_add(&hash, (const char *)data + at, size - at < piece ? size - at : piece);
    fp8r_sha256_finish(&hash, digest);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static void published_examples(void **state)
{
    static const struct {
        const char *data, *digest;
    } examples[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    static char million[1000000];
    char text[65];
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        digest_hex(examples[i].data, strlen(examples[i].data), 1000, text);
        assert_string_equal(text, examples[i].digest);
    }
    memset(million, 'a', sizeof million);
    digest_hex(million, sizeof million, 997, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void splitting_changes_nothing(void **state)
{
    char data[200], whole[65], split[65];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31);
    for (size_t size = 50; size <= sizeof data; size++) {
        digest_hex(data, size, size, whole);
        for (size_t piece = 1; piece < size; piece += 7) {
            digest_hex(data, size, piece, split);
            assert_string_equal(split, whole);
        }
    }
}

static void strings_keep_their_borders(void **state)
{
    unsigned char one[32], other[32];
    struct fp8r_sha256 hash;
    (void)state;
    fp8r_sha256_init(&hash);
    fp8r_sha256_add_string(&hash, "ab");
    fp8r_sha256_add_string(&hash, "c");
    fp8r_sha256_finish(&hash, one);
    fp8r_sha256_init(&hash);
    fp8r_sha256_add_string(&hash, "a");
    fp8r_sha256_add_string(&hash, "bc");
    fp8r_sha256_finish(&hash, other);
    assert_memory_not_equal(one, other, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(splitting_changes_nothing),
        cmocka_unit_test(strings_keep_their_borders),
    };
    return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
