// Messages longer than the transport's limit: fragmented, sealed, lost or reordered, and reassembled.

#include "two.h"

#define NULLS NULL, 0

enum { ROOM = 100, LONG = 9000 };
static uint8_t message[LONG], pieces[2 * LONG], whole[LONG];

static void fill(void)
{
    for (size_t at = 0; at < LONG; at++)
        message[at] = (uint8_t)(at * 7 + at / 256);
}

// Every length, first with a buffer that is too small: that attempt uses no id.
static void every_length_comes_through_in_any_order(void)
{
    wraith_splitter_t splitter;
    wraith_reassembler_t all;
    OK(wraith_splitter_new(&splitter));
    OK(wraith_reassembler_new(NULL, &all));
    size_t lengths[] = {0, 1, ROOM - 1, ROOM, 3 * (ROOM - 7), 3 * (ROOM - 7) + 1, LONG};
    uint32_t first = 0;
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        size_t len = lengths[at], total, told, held;
        uint32_t is_whole = 9;
        GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_splitter_split(splitter, message, len, ROOM, NULLS, &total));
        OK(wraith_splitter_split(splitter, message, len, ROOM, pieces, total, &told));
        CHECK(told == total && pieces[0] == (len < ROOM ? 0 : 1));
        if (len >= ROOM) {
            uint32_t id = pieces[1] | (uint32_t)pieces[2] << 8 | (uint32_t)pieces[3] << 16 | (uint32_t)pieces[4] << 24;
            first = at == 3 ? id : first;
            CHECK(id == (uint32_t)(first + at - 3));
        }
        size_t count = (total + ROOM - 1) / ROOM;
        for (size_t left = count; left > 0; left--) {
            const uint8_t *piece = pieces + (left - 1) * ROOM;
            size_t piece_len = left == count ? total - (count - 1) * ROOM : ROOM;
            if (left == 1 && len > 0) {
                GIVES(WRAITH_BUFFER_TOO_SMALL,
                      wraith_reassembler_push(all, piece, piece_len, whole, len - 1, &told, &is_whole));
                CHECK(told == len);
            }
            OK(wraith_reassembler_push(all, piece, piece_len, whole, left == 1 ? len : 0, &told, &is_whole));
            CHECK(is_whole == (left == 1) && told == (left == 1 ? len : 0));
        }
        CHECK(memcmp(whole, message, len) == 0);
        OK(wraith_reassembler_held(all, &held));
        CHECK(held == 0);
        // A repeated fragment changes nothing, unless it is a whole message: those have no id.
        OK(wraith_reassembler_push(all, pieces, total < ROOM ? total : ROOM, whole, LONG, &told, &is_whole));
        CHECK(is_whole == (count == 1));
    }
    OK(wraith_splitter_free(splitter));
    OK(wraith_reassembler_free(all));
    GIVES(WRAITH_INVALID_HANDLE, wraith_splitter_free(splitter));
    GIVES(WRAITH_INVALID_HANDLE, wraith_reassembler_free(all));
}

static void pieces_go_through_a_session(void)
{
    struct two two;
    wraith_splitter_t splitter;
    wraith_reassembler_t all;
    size_t total, len, at = 0;
    uint32_t is_whole = 0;
    shake_hands(&two);
    OK(wraith_splitter_new(&splitter));
    OK(wraith_reassembler_new(NULL, &all));
    OK(wraith_splitter_split(splitter, message, LONG, ROOM, pieces, sizeof pieces, &total));
    for (; at < total; at += ROOM) {
        uint8_t sealed[ROOM + WRAITH_SESSION_OVERHEAD], opened[ROOM];
        size_t piece_len = total - at < ROOM ? total - at : ROOM;
        CHECK(!is_whole);
        OK(wraith_session_seal(two.session[0], NULLS, pieces + at, piece_len, sealed, sizeof sealed, &len, NULL));
        OK(wraith_session_open(two.session[1], NULLS, sealed, len, opened, sizeof opened, &len, NULL));
        OK(wraith_reassembler_push(all, opened, len, whole, sizeof whole, &len, &is_whole));
    }
    CHECK(is_whole && len == LONG && memcmp(whole, message, LONG) == 0);
    OK(wraith_splitter_free(splitter));
    OK(wraith_reassembler_free(all));
    part(&two);
}

static void what_is_held_is_bounded(void)
{
    wraith_reassembly_limits_t limits = {.struct_size = sizeof limits, .message_bytes = 500, .held_bytes = 1000,
                                         .held_messages = 3};
    wraith_splitter_t splitter;
    wraith_reassembler_t all;
    size_t total, len, held;
    uint32_t is_whole;
    OK(wraith_splitter_new(&splitter));
    OK(wraith_reassembler_new(&limits, &all));
    for (int round = 0; round < 200; round++) {
        OK(wraith_splitter_split(splitter, message, 400, ROOM, pieces, sizeof pieces, &total));
        for (size_t at = ROOM; at < total; at += ROOM) {
            OK(wraith_reassembler_push(all, pieces + at, total - at < ROOM ? total - at : ROOM, whole, LONG, &len, &is_whole));
            OK(wraith_reassembler_held(all, &held));
            CHECK(!is_whole && held <= 1000);
        }
    }
    CHECK(held > 0);
    // The last message was kept; one that is too long is dropped.
    OK(wraith_reassembler_push(all, pieces, ROOM, whole, LONG, &len, &is_whole));
    CHECK(is_whole && len == 400 && memcmp(whole, message, len) == 0);
    OK(wraith_splitter_split(splitter, message, 501, 490, pieces, sizeof pieces, &total));
    OK(wraith_reassembler_push(all, pieces, 490, whole, LONG, &len, &is_whole));
    GIVES(WRAITH_EXHAUSTED, wraith_reassembler_push(all, pieces + 490, total - 490, whole, LONG, &len, &is_whole));
    OK(wraith_reassembler_free(all));
    limits.struct_size = 3;
    GIVES(WRAITH_INVALID_INPUT, wraith_reassembler_new(&limits, &all));
    OK(wraith_splitter_free(splitter));
}

static void what_is_no_piece_is_refused(void)
{
    static const uint8_t two_of_three[] = {1, 7, 0, 0, 0, 1, 3, 'b'}, two_of_four[] = {1, 7, 0, 0, 0, 1, 4, 'b'},
                         unknown[] = {3, 0, 0, 0};
    wraith_splitter_t splitter;
    wraith_reassembler_t all;
    size_t len, held;
    uint32_t is_whole;
    OK(wraith_splitter_new(&splitter));
    OK(wraith_reassembler_new(NULL, &all));
    OK(wraith_reassembler_push(all, two_of_three, 8, NULLS, &len, &is_whole));
    GIVES(WRAITH_UNAUTHENTIC, wraith_reassembler_push(all, two_of_four, 8, NULLS, &len, &is_whole));
    GIVES(WRAITH_UNAUTHENTIC, wraith_reassembler_push(all, two_of_three, 7, NULLS, &len, &is_whole));
    GIVES(WRAITH_UNAUTHENTIC, wraith_reassembler_push(all, unknown, 4, NULLS, &len, &is_whole));
    GIVES(WRAITH_UNAUTHENTIC, wraith_reassembler_push(all, NULLS, NULLS, &len, &is_whole));
    OK(wraith_reassembler_held(all, &held));
    CHECK(held == 65);
    GIVES(WRAITH_INVALID_INPUT,
          wraith_splitter_split(splitter, message, 20, WRAITH_PIECE_MIN - 1, pieces, sizeof pieces, &len));
    OK(wraith_splitter_split(splitter, message, 20, WRAITH_PIECE_MIN, pieces, sizeof pieces, &len));
    GIVES(WRAITH_INVALID_INPUT, wraith_splitter_split(splitter, message, 20, 0, pieces, sizeof pieces, &len));
    OK(wraith_splitter_free(splitter));
    OK(wraith_reassembler_free(all));
}

int main(void)
{
    fill();
    every_length_comes_through_in_any_order();
    pieces_go_through_a_session();
    what_is_held_is_bounded();
    what_is_no_piece_is_refused();
    puts("fragments: all as it should be");
    return 0;
}
