// Misuse that must not crash, leak or change any state: invalid handles, NULL, buffers that are too small, garbage,
// several threads on one handle, and freeing a handle in use.

#include <pthread.h>

#include "two.h"

#define NULLS NULL, 0

static void handles_that_are_none(void)
{
    struct two two;
    shake_hands(&two);
    wraith_hasher_t freed;
    OK(wraith_hasher_new(&freed));
    OK(wraith_hasher_free(freed));
    uint64_t bad[] = {0, 1, UINT64_MAX, freed, two.identity[0], two.identity[0] ^ (1ull << 60), 0x0200000001ffffffull};
    uint8_t out[2000], big[3000];
    size_t len;
    uint32_t turn;
    uint64_t made = 0;
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        uint64_t h = bad[at];
        GIVES(WRAITH_INVALID_HANDLE, wraith_hasher_update(h, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_hasher_finish(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_hasher_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_turn(h, &turn));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_write_len(h, 0, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_write(h, NULLS, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_read(h, NULLS, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_repeat(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_hash(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_peer(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_claimed_peer(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_remote_key(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_session(h, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_seal(h, NULLS, NULLS, out, sizeof out, &len, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_open(h, NULLS, NULLS, out, sizeof out, &len, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_seal_many(h, NULLS, NULLS, out, sizeof out, &len, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_open_many(h, NULLS, NULLS, out, sizeof out, &len, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_set_time(h, 0));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_save(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_stored(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_keep(h, h, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_session_load(h, NULLS, &made));
        GIVES(WRAITH_INVALID_INPUT, wraith_vault_remove(h, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_vault_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_bundle(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_remaining(h, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_save(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_replenish(h, two.identity[0], 1));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_rotate(h, two.identity[0]));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_encrypt(h, NULLS, NULLS, big, sizeof big, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_decrypt(h, NULLS, NULLS, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_peer(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_binding(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_save(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_set_padding(h, 0));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_set_time(h, 0));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_encrypt_many(h, NULLS, NULLS, out, sizeof out, &len, NULL, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_decrypt_many(h, NULLS, NULLS, out, sizeof out, &len, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_keep(h, h, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_ratchet_load(h, NULLS, &made));
        GIVES(WRAITH_INVALID_HANDLE,
              wraith_ratchet_respond_in_vault(h, NULLS, h, h, NULLS, NULLS, out, sizeof out, &len, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_keep(h, h, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_load(h, NULLS, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_prekeys_generate_in_vault(h, NULLS, h, 1, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_splitter_split(h, NULLS, 20, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_splitter_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_reassembler_push(h, NULLS, out, sizeof out, &len, &turn));
        GIVES(WRAITH_INVALID_HANDLE, wraith_reassembler_held(h, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_reassembler_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_node_id(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_node_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_wait(h, WRAITH_FOREVER));
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_cancel(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_code(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_continues_for(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_serve(h, NULL, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connect(h, NULLS, 0, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connect_to_contact(h, NULLS, NULLS, 0, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_code(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_ticket(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_address(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_places(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_accept(h, WRAITH_FOREVER, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_close(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_service_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_wait(h, WRAITH_FOREVER));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_peer(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_remote(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_route(h, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_open_stream(h, WRAITH_FOREVER, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_accept_stream(h, WRAITH_FOREVER, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_max_datagram(h, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_send_datagram(h, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_read_datagram(h, WRAITH_FOREVER, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_close(h, 0, NULLS));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_closed(h, WRAITH_FOREVER, NULL, NULL, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_connection_free(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_write(h, NULLS, WRAITH_FOREVER, NULL));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_finish(h));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_acked(h, WRAITH_FOREVER));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_reset(h, 0));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_read(h, WRAITH_FOREVER, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_read_to_end(h, WRAITH_FOREVER, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_stop(h, 0));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_reset_code(h, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_stop_code(h, &made));
        GIVES(WRAITH_INVALID_HANDLE, wraith_stream_free(h));
        if (h == two.identity[0])
            continue;
        GIVES(WRAITH_INVALID_HANDLE, wraith_identity_sign(h, NULLS, out, sizeof out, &len));
        GIVES(WRAITH_INVALID_HANDLE, wraith_identity_free(h));
        if (h == 0)
            continue;
        wraith_handshake_options_t options = handshake_options(1, h);
        GIVES(WRAITH_INVALID_HANDLE, wraith_handshake_new(&options, &made));
    }
    CHECK(made == 0);
    part(&two);
}

static void null_where_something_belongs(void)
{
    struct two two;
    shake_hands(&two);
    uint8_t out[100];
    size_t len = 7;
    wraith_bytes_t null_item = {NULL, 1};
    wraith_session_t s = two.session[0];
    GIVES(WRAITH_INVALID_INPUT, wraith_hash(NULL, 1, out, sizeof out, &len));
    GIVES(WRAITH_INVALID_INPUT, wraith_hash(NULLS, NULL, 32, &len));
    GIVES(WRAITH_INVALID_INPUT, wraith_hash(NULLS, out, sizeof out, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_hash(out, SIZE_MAX, out, sizeof out, &len));
    GIVES(WRAITH_INVALID_INPUT, wraith_hasher_new(NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_identity_generate(NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_identity_from_seed(out, 31, &s));
    GIVES(WRAITH_INVALID_INPUT, wraith_identity_from_seed(NULL, 32, &s));
    GIVES(WRAITH_INVALID_INPUT, wraith_handshake_new(NULL, &s));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_seal(s, NULLS, NULL, 1, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_seal(s, NULL, 1, NULLS, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_seal_many(s, NULLS, NULL, 1, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_seal_many(s, NULLS, &null_item, 1, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_seal_many(s, NULLS, &null_item, SIZE_MAX, out, sizeof out, &len, NULL));
    null_item.len = 0;
    GIVES(WRAITH_INVALID_INPUT, wraith_session_open_many(s, NULLS, &null_item, 1, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_save(s, NULL, 1, &len));
    GIVES(WRAITH_INVALID_INPUT, wraith_ratchet_encrypt_many(0, NULLS, &null_item, 1, out, sizeof out, &len, NULL, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_ratchet_decrypt_many(0, NULLS, &null_item, 1, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_splitter_new(NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_reassembler_new(NULL, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_reassembler_push(0, NULLS, out, sizeof out, &len, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_node_new(NULL, NULL));
    CHECK(len == 7 && s == two.session[0]);
    // A failure has a message, on this thread.
    OK(wraith_last_error(out, sizeof out, &len));
    CHECK(len > 10);
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_last_error(out, 1, &len));
    OK(wraith_last_error(out, len, &len));
    part(&two);
}

static void *words_of_another_thread(void *user)
{
    size_t *len = user;
    uint8_t out[100];
    OK(wraith_last_error(out, sizeof out, len));
    return NULL;
}

static void words_of_a_failure_stay_on_their_thread(void)
{
    pthread_t other;
    size_t len = 99;
    GIVES(WRAITH_INVALID_INPUT, wraith_hasher_new(NULL));
    CHECK(pthread_create(&other, NULL, words_of_another_thread, &len) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(len == 0);
}

static void buffers_that_are_too_small_change_nothing(void)
{
    struct two two;
    shake_hands(&two);
    uint8_t words[100] = "some words", sealed[200], opened[100];
    size_t len, got;
    uint64_t number = 7;
    for (size_t cap = 0; cap < 100 + WRAITH_SESSION_OVERHEAD; cap++) {
        memset(sealed, 0xee, sizeof sealed);
        GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_session_seal(two.session[0], NULLS, words, 100, sealed, cap, &len, &number));
        CHECK(len == 100 + WRAITH_SESSION_OVERHEAD && number == 7 && sealed[0] == 0xee);
    }
    OK(wraith_session_seal(two.session[0], NULLS, words, 100, sealed, len, &len, &number));
    CHECK(number == 0 && sealed[len] == 0xee);
    for (size_t cap = 0; cap < 100; cap++) {
        GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_session_open(two.session[1], NULLS, sealed, len, opened, cap, &got, NULL));
        CHECK(got == 100);
    }
    OK(wraith_session_open(two.session[1], NULLS, sealed, len, opened, 100, &got, &number));
    CHECK(memcmp(words, opened, 100) == 0);
    part(&two);
}

// Input and output may share a buffer.
static void in_place(void)
{
    struct two two;
    shake_hands(&two);
    uint8_t buffer[64] = "in place";
    size_t len;
    OK(wraith_session_seal(two.session[0], NULLS, buffer, 8, buffer, sizeof buffer, &len, NULL));
    OK(wraith_session_open(two.session[1], NULLS, buffer, len, buffer, sizeof buffer, &len, NULL));
    CHECK(len == 8 && memcmp(buffer, "in place", 8) == 0);
    part(&two);
}

static uint32_t drawn = 12345;

static uint8_t draw(void)
{
    drawn = drawn * 1664525 + 1013904223;
    return (uint8_t)(drawn >> 24);
}

static void garbage_is_refused(void)
{
    struct two two;
    shake_hands(&two);
    wraith_handshake_options_t options = handshake_options(0, two.identity[0]);
    wraith_handshake_t reader;
    wraith_session_t restored;
    OK(wraith_handshake_new(&options, &reader));
    uint8_t noise[3000] = {0}, out[4000], good[40];
    size_t len, good_len;
    OK(wraith_session_seal(two.session[0], NULLS, noise, 10, good, sizeof good, &good_len, NULL));
    for (int round = 0; round < 2000; round++) {
        size_t size = round < 100 ? (size_t)round : draw() * (size_t)11;
        for (size_t at = 0; at < size; at++)
            noise[at] = draw();
        CHECK(wraith_session_open(two.session[1], NULLS, noise, size, out, sizeof out, &len, NULL) != WRAITH_OK);
        CHECK(wraith_session_restore(noise, size, &restored) == WRAITH_UNAUTHENTIC);
        CHECK(wraith_ratchet_restore(noise, size, &restored) == WRAITH_UNAUTHENTIC);
        CHECK(wraith_prekeys_restore(noise, size, &restored) == WRAITH_UNAUTHENTIC);
        CHECK(wraith_ratchet_initiate(two.identity[0], noise, size, &restored) == WRAITH_UNAUTHENTIC);
        CHECK(wraith_sealed_box_open(two.identity[0], NULLS, noise, size, out, sizeof out, &len) == WRAITH_UNAUTHENTIC);
        CHECK(wraith_node_id_from_text(noise, size, out, sizeof out, &len) == WRAITH_INVALID_INPUT);
        if (round < 50)
            (void)wraith_handshake_read(two.handshake[1], noise, size, out, sizeof out, &len);
        size_t at = draw() % good_len;
        good[at] ^= 1;
        CHECK(wraith_session_open(two.session[1], NULLS, good, good_len, out, sizeof out, &len, NULL) != WRAITH_OK);
        good[at] ^= 1;
    }
    // The genuine message still opens afterwards.
    OK(wraith_session_open(two.session[1], NULLS, good, good_len, out, sizeof out, &len, NULL));
    OK(wraith_handshake_free(reader));
    part(&two);
}

enum { EACH = 1500 };

struct sealer {
    wraith_session_t session;
    uint8_t messages[EACH][WRAITH_SESSION_OVERHEAD + 4];
};

static void *seal_many_times(void *user)
{
    struct sealer *sealer = user;
    for (int at = 0; at < EACH; at++) {
        size_t len;
        uint8_t words[4] = {1, 2, 3, 4};
        OK(wraith_session_seal(sealer->session, NULLS, words, 4, sealer->messages[at], sizeof sealer->messages[at],
                               &len, NULL));
    }
    return NULL;
}

// No number is used twice: the other side opens every message.
static void threads_on_one_session_take_turns(void)
{
    static struct sealer sealers[2];
    struct two two;
    pthread_t threads[2];
    shake_hands(&two);
    for (int at = 0; at < 2; at++) {
        sealers[at].session = two.session[0];
        CHECK(pthread_create(&threads[at], NULL, seal_many_times, &sealers[at]) == 0);
    }
    for (int at = 0; at < 2; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    uint8_t *number[2] = {sealers[0].messages[0], sealers[1].messages[0]};
    int taken[2] = {0, 0};
    uint8_t out[4];
    size_t len;
    // In the order of their numbers, so that no message is older than the window.
    for (int step = 0; step < 2 * EACH; step++) {
        int from = taken[0] == EACH ||
                   (taken[1] < EACH && (number[1][1] * 256 + number[1][0]) < (number[0][1] * 256 + number[0][0]));
        OK(wraith_session_open(two.session[1], NULLS, number[from], sizeof sealers[0].messages[0], out, 4, &len, NULL));
        if (++taken[from] < EACH)
            number[from] = sealers[from].messages[taken[from]];
    }
    part(&two);
}

static void *seal_until_it_is_freed(void *user)
{
    const wraith_session_t *session = user;
    uint8_t out[64];
    size_t len;
    wraith_status_t status;
    do {
        status = wraith_session_seal(*session, NULLS, NULLS, out, sizeof out, &len, NULL);
        CHECK(status == WRAITH_OK || status == WRAITH_INVALID_HANDLE);
    } while (status == WRAITH_OK);
    return NULL;
}

static void freeing_what_is_in_use(void)
{
    for (int round = 0; round < 5; round++) {
        struct two two;
        pthread_t threads[2];
        uint8_t out[64];
        size_t len;
        uint64_t number = 0;
        shake_hands(&two);
        for (int at = 0; at < 2; at++)
            CHECK(pthread_create(&threads[at], NULL, seal_until_it_is_freed, &two.session[0]) == 0);
        while (number < 50)
            OK(wraith_session_seal(two.session[0], NULLS, NULLS, out, sizeof out, &len, &number));
        OK(wraith_session_free(two.session[0]));
        for (int at = 0; at < 2; at++)
            CHECK(pthread_join(threads[at], NULL) == 0);
        OK(wraith_session_free(two.session[1]));
        for (int side = 0; side < 2; side++) {
            OK(wraith_handshake_free(two.handshake[side]));
            OK(wraith_identity_free(two.identity[side]));
        }
    }
}

int main(void)
{
    handles_that_are_none();
    null_where_something_belongs();
    words_of_a_failure_stay_on_their_thread();
    buffers_that_are_too_small_change_nothing();
    in_place();
    garbage_is_refused();
    threads_on_one_session_take_turns();
    freeing_what_is_in_use();
    puts("hostile: all as it should be");
    return 0;
}
