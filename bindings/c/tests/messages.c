// Regular use of keys, handshakes and sessions.

#include "two.h"

static void hashes_are_blake3(void)
{
    // The official vectors of the empty input and of the bytes 0, 1, 2.
    static const char *empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    uint8_t hash[WRAITH_HASH_BYTES], pieces[WRAITH_HASH_BYTES];
    char hex[65];
    size_t len;
    OK(wraith_hash(NULL, 0, hash, sizeof hash, &len));
    CHECK(len == sizeof hash);
    for (size_t at = 0; at < len; at++)
        snprintf(hex + 2 * at, 3, "%02x", hash[at]);
    CHECK(strcmp(hex, empty) == 0);
    wraith_hasher_t hasher;
    OK(wraith_hasher_new(&hasher));
    OK(wraith_hasher_update(hasher, NULL, 0));
    OK(wraith_hasher_finish(hasher, pieces, sizeof pieces, &len));
    CHECK(memcmp(hash, pieces, len) == 0);
    OK(wraith_hasher_update(hasher, (const uint8_t *)"ab", 2));
    OK(wraith_hasher_update(hasher, (const uint8_t *)"c", 1));
    OK(wraith_hasher_finish(hasher, pieces, sizeof pieces, &len));
    OK(wraith_hash((const uint8_t *)"abc", 3, hash, sizeof hash, &len));
    CHECK(memcmp(hash, pieces, len) == 0);
    OK(wraith_hasher_free(hasher));
}

static void an_identity_signs_and_has_a_name(void)
{
    uint8_t seed[WRAITH_SEED_BYTES] = {1, 2, 3}, id[WRAITH_NODE_ID_BYTES], again[WRAITH_NODE_ID_BYTES];
    uint8_t signature[WRAITH_SIGNATURE_BYTES], name[WRAITH_NODE_ID_TEXT], back[WRAITH_SEED_BYTES];
    const uint8_t *words = (const uint8_t *)"words";
    size_t len;
    wraith_identity_t identity;
    OK(wraith_identity_from_seed(seed, sizeof seed, &identity));
    OK(wraith_identity_seed(identity, back, sizeof back, &len));
    CHECK(memcmp(seed, back, sizeof seed) == 0);
    OK(wraith_identity_node_id(identity, id, sizeof id, &len));
    OK(wraith_node_id_to_text(id, sizeof id, name, sizeof name, &len));
    CHECK(len == WRAITH_NODE_ID_TEXT);
    OK(wraith_node_id_from_text(name, len, again, sizeof again, &len));
    CHECK(memcmp(id, again, sizeof id) == 0);
    OK(wraith_identity_sign(identity, words, 5, signature, sizeof signature, &len));
    OK(wraith_node_id_verify(id, sizeof id, words, 5, signature, sizeof signature));
    GIVES(WRAITH_UNAUTHENTIC, wraith_node_id_verify(id, sizeof id, words, 4, signature, sizeof signature));
    OK(wraith_identity_sign(identity, NULL, 0, signature, sizeof signature, &len));
    OK(wraith_node_id_verify(id, sizeof id, NULL, 0, signature, sizeof signature));
    signature[3] ^= 1;
    GIVES(WRAITH_UNAUTHENTIC, wraith_node_id_verify(id, sizeof id, NULL, 0, signature, sizeof signature));
    OK(wraith_identity_free(identity));
}

static void both_sides_know_each_other(void)
{
    struct two two;
    shake_hands(&two);
    uint8_t one[64], other[64];
    size_t len, other_len;
    for (int side = 0; side < 2; side++) {
        OK(wraith_handshake_peer(two.handshake[side], one, sizeof one, &len));
        OK(wraith_identity_node_id(two.identity[!side], other, sizeof other, &other_len));
        CHECK(len == other_len && memcmp(one, other, len) == 0);
        OK(wraith_handshake_remote_key(two.handshake[side], one, sizeof one, &len));
        CHECK(len == 32);
        wraith_session_t second;
        GIVES(WRAITH_INVALID_STATE, wraith_handshake_session(two.handshake[side], &second));
    }
    OK(wraith_handshake_hash(two.handshake[0], one, sizeof one, &len));
    OK(wraith_handshake_hash(two.handshake[1], other, sizeof other, &other_len));
    CHECK(len == other_len && memcmp(one, other, len) == 0);
    part(&two);
}

// Protocol names of all kinds lead to compatible sessions.
static void protocols(void)
{
    static const struct {
        const char *name;
        int knows_responder, has_psk, anonymous;
    } all[] = {
        {"Noise_XX_25519_AESGCM_SHA256", 0, 0, 0},
        {"Noise_XKhfs_25519+MLKEM768_ChaChaPoly_BLAKE2b", 1, 0, 0},
        {"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s", 1, 1, 0},
        {"Noise_NKhfs_25519+MLKEM768_AESGCM_SHA512", 1, 0, 1},
        {"Noise_IXhfs+psk0_25519+MLKEM768_ChaChaPoly_SHA256", 0, 1, 0},
    };
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
        struct two two = {{0, 0}, {0, 0}, {0, 0}};
        uint8_t id[32], psk[32] = {9};
        size_t len;
        for (int side = 0; side < 2; side++)
            OK(wraith_identity_generate(&two.identity[side]));
        OK(wraith_identity_node_id(two.identity[1], id, sizeof id, &len));
        for (int side = 0; side < 2; side++) {
            wraith_handshake_options_t options = handshake_options(side == 0, two.identity[side]);
            options.protocol = text(all[at].name);
            if (all[at].has_psk)
                options.psk = (wraith_bytes_t){psk, sizeof psk};
            if (side == 0 && all[at].knows_responder)
                options.peer = (wraith_bytes_t){id, sizeof id};
            if (side == 0 && all[at].anonymous)
                options.identity = 0;
            OK(wraith_handshake_new(&options, &two.handshake[side]));
        }
        uint32_t turn = WRAITH_TURN_WRITE;
        for (int from = 0; turn != WRAITH_TURN_OVER; from = !from) {
            pass_message(&two, from, from ? "payload" : "");
            OK(wraith_handshake_turn(two.handshake[from], &turn));
        }
        for (int side = 0; side < 2; side++)
            OK(wraith_handshake_session(two.handshake[side], &two.session[side]));
        uint8_t message[40], got[16];
        OK(wraith_session_seal(two.session[1], NULL, 0, psk, 16, message, 40, &len, NULL));
        OK(wraith_session_open(two.session[0], NULL, 0, message, len, got, 16, &len, NULL));
        CHECK(len == 16 && memcmp(psk, got, 16) == 0);
        part(&two);
    }
}

static void messages_may_be_lost_repeated_and_reordered(void)
{
    struct two two;
    shake_hands(&two);
    enum { COUNT = 50 };
    uint8_t sealed[COUNT][64], got[40];
    size_t len[COUNT], got_len;
    const uint8_t *aad = (const uint8_t *)"aad";
    for (uint64_t at = 0; at < COUNT; at++) {
        uint8_t words[40];
        memset(words, (int)at, sizeof words);
        uint64_t number;
        OK(wraith_session_seal(two.session[0], aad, 3, words, (size_t)at % 41, sealed[at], 64, &len[at], &number));
        CHECK(number == at && len[at] == at % 41 + WRAITH_SESSION_OVERHEAD);
    }
    for (uint64_t step = 0; step < COUNT; step++) {
        uint64_t at = step * 7 % COUNT, number;
        if (at == 13)
            continue;
        OK(wraith_session_open(two.session[1], aad, 3, sealed[at], len[at], got, sizeof got, &got_len, &number));
        CHECK(number == at && got_len == at % 41 && (got_len == 0 || got[got_len - 1] == at));
        GIVES(WRAITH_REPLAYED,
              wraith_session_open(two.session[1], aad, 3, sealed[at], len[at], got, sizeof got, &got_len, NULL));
    }
    GIVES(WRAITH_UNAUTHENTIC, wraith_session_open(two.session[1], aad, 2, sealed[13], len[13], got, 40, &got_len, NULL));
    OK(wraith_session_open(two.session[1], aad, 3, sealed[13], len[13], got, sizeof got, &got_len, NULL));
    part(&two);
}

static void many_at_once(void)
{
    struct two two;
    shake_hands(&two);
    wraith_bytes_t texts[4] = {text("one"), {NULL, 0}, text("three"), text("four")}, messages[5];
    uint8_t sealed[200], opened[100];
    size_t sealed_len, opened_len, failed = 99, at = 0;
    wraith_opened_t results[5];
    OK(wraith_session_seal_many(two.session[0], NULL, 0, texts, 4, sealed, sizeof sealed, &sealed_len, &failed));
    CHECK(failed == 99 && sealed_len == 3 + 5 + 4 + 4 * WRAITH_SESSION_OVERHEAD);
    for (int i = 0; i < 4; i++) {
        messages[i] = (wraith_bytes_t){sealed + at, texts[i].len + WRAITH_SESSION_OVERHEAD};
        at += messages[i].len;
    }
    messages[4] = messages[0];
    sealed[messages[0].len + messages[1].len] ^= 1; // the third message's number
    GIVES(WRAITH_BUFFER_TOO_SMALL,
          wraith_session_open_many(two.session[1], NULL, 0, messages, 5, opened, 3, &opened_len, results));
    OK(wraith_session_open_many(two.session[1], NULL, 0, messages, 5, opened, opened_len, &opened_len, results));
    CHECK(results[0].status == WRAITH_OK && results[1].status == WRAITH_OK && results[3].status == WRAITH_OK);
    CHECK(results[2].status == WRAITH_UNAUTHENTIC && results[4].status == WRAITH_REPLAYED);
    CHECK(results[1].len == 0 && results[3].number == 3);
    CHECK(opened_len == 7 && memcmp(opened + results[3].offset, "four", 4) == 0);
    // If one message cannot be sealed, none is, and no number is used.
    static uint8_t huge[(16 << 20) + 1];
    static uint8_t room[(16 << 20) + 200];
    texts[2] = (wraith_bytes_t){huge, sizeof huge};
    GIVES(WRAITH_INVALID_INPUT,
          wraith_session_seal_many(two.session[0], NULL, 0, texts, 4, room, sizeof room, &sealed_len, &failed));
    CHECK(failed == 2);
    uint64_t number;
    OK(wraith_session_seal(two.session[0], NULL, 0, NULL, 0, sealed, sizeof sealed, &sealed_len, &number));
    CHECK(number == 4);
    OK(wraith_session_seal_many(two.session[0], NULL, 0, NULL, 0, NULL, 0, &sealed_len, NULL));
    CHECK(sealed_len == 0);
    part(&two);
}

static void a_session_survives_its_process(void)
{
    struct two two;
    shake_hands(&two);
    uint8_t saved[WRAITH_SESSION_SAVED_MAX], message[64], got[64];
    size_t saved_len, len;
    uint64_t first, second;
    wraith_session_t before = two.session[0];
    OK(wraith_session_seal(before, NULL, 0, NULL, 0, message, sizeof message, &len, &first));
    GIVES(WRAITH_INVALID_STATE, wraith_session_stored(before));
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_session_save(before, saved, 10, &saved_len));
    GIVES(WRAITH_INVALID_STATE, wraith_session_stored(before));
    OK(wraith_session_save(before, saved, sizeof saved, &saved_len));
    OK(wraith_session_stored(before));
    OK(wraith_session_free(before));
    OK(wraith_session_restore(saved, saved_len, &two.session[0]));
    GIVES(WRAITH_INVALID_STATE, wraith_session_seal(two.session[0], NULL, 0, NULL, 0, message, 64, &len, &second));
    OK(wraith_session_save(two.session[0], saved, sizeof saved, &saved_len));
    OK(wraith_session_stored(two.session[0]));
    OK(wraith_session_seal(two.session[0], NULL, 0, NULL, 0, message, 64, &len, &second));
    CHECK(second > first);
    OK(wraith_session_open(two.session[1], NULL, 0, message, len, got, sizeof got, &len, NULL));
    GIVES(WRAITH_UNAUTHENTIC, wraith_session_restore(saved, saved_len - 1, &before));
    part(&two);
}

int main(void)
{
    CHECK(wraith_abi() == WRAITH_ABI && strlen(wraith_version()) > 0);
    hashes_are_blake3();
    an_identity_signs_and_has_a_name();
    both_sides_know_each_other();
    protocols();
    messages_may_be_lost_repeated_and_reordered();
    many_at_once();
    a_session_survives_its_process();
    puts("messages: all as it should be");
    return 0;
}
