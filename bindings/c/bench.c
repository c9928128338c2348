// The cost of calls from C, in nanoseconds: medians of blocks of calls.

#include <time.h>

#include "tests/two.h"

enum { BLOCKS = 201, CALLS = 1000 };

static struct two two;
static uint8_t out[256], words[64];
static size_t len;

static void call_version(void)
{
    CHECK(wraith_version() != NULL);
}

static void call_hash(void)
{
    OK(wraith_hash(NULL, 0, out, sizeof out, &len));
}

static void call_seal(void)
{
    OK(wraith_session_seal(two.session[0], NULL, 0, words, sizeof words, out, sizeof out, &len, NULL));
}

static void call_invalid(void)
{
    CHECK(wraith_session_seal(0, NULL, 0, words, sizeof words, out, sizeof out, &len, NULL) == WRAITH_INVALID_HANDLE);
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void measure(const char *name, void (*call)(void))
{
    static double blocks[BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int at = 0; at < CALLS; at++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &end);
        blocks[block] = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
    }
    qsort(blocks, BLOCKS, sizeof *blocks, compare);
    printf("%-34s %8.1f ns\n", name, blocks[BLOCKS / 2]);
}

int main(void)
{
    shake_hands(&two);
    measure("wraith_version", call_version);
    measure("wraith_hash, 0 bytes", call_hash);
    measure("wraith_session_seal, 64 bytes", call_seal);
    measure("wraith_session_seal, no session", call_invalid);
    part(&two);
    return 0;
}
