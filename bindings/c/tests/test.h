// Shared parts of the tests: a check that reports its line, and files with known content.
#ifndef TEST_H
#define TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wraith.h"

// Works in builds without asserts, too.
#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static inline void check_status(wraith_status_t got, wraith_status_t wanted, const char *call, int line)
{
    if (got == wanted)
        return;
    uint8_t words[500];
    size_t len = 0;
    if (wraith_last_error(words, sizeof words, &len) != WRAITH_OK)
        len = 0;
    fprintf(stderr, "line %d: %s gave %d, not %d: %.*s\n", line, call, (int)got, (int)wanted, (int)len,
            (const char *)words);
    exit(1);
}

#define GIVES(status, call) check_status((call), (status), #call, __LINE__)
#define OK(call) GIVES(WRAITH_OK, call)

static inline wraith_bytes_t text(const char *words)
{
    wraith_bytes_t bytes = {(const uint8_t *)words, strlen(words)};
    return bytes;
}

// Bytes that differ between files and between offsets.
static inline void write_file(const char *path, size_t size, uint32_t seed)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    for (size_t at = 0; at < size; at++) {
        seed = seed * 1664525 + 1013904223;
        CHECK(fputc((int)(seed >> 24), file) != EOF);
    }
    CHECK(fclose(file) == 0);
}

static inline void check_same(const char *one, const char *other)
{
    FILE *a = fopen(one, "rb"), *b = fopen(other, "rb");
    CHECK(a != NULL && b != NULL);
    int x, y;
    do {
        x = fgetc(a);
        y = fgetc(b);
        CHECK(x == y);
    } while (x != EOF);
    fclose(a);
    fclose(b);
}

#endif
