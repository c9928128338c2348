// State that survives its process: sessions in a folder or in a vault of the caller, and ratchet conversations; also
// sealed boxes. `lasting FOLDER` works in an empty folder.

#include "shelf.h"
#include "two.h"

#define NULLS NULL, 0
#define NAME (const uint8_t *)"with-anna", 9

static void pass_text(wraith_session_t from, wraith_session_t to, const char *words)
{
    uint8_t message[200], got[200];
    size_t len, got_len;
    OK(wraith_session_seal(from, NULLS, (const uint8_t *)words, strlen(words), message, sizeof message, &len, NULL));
    OK(wraith_session_open(to, NULLS, message, len, got, sizeof got, &got_len, NULL));
    CHECK(got_len == strlen(words) && memcmp(got, words, got_len) == 0);
    GIVES(WRAITH_REPLAYED, wraith_session_open(to, NULLS, message, len, got, sizeof got, &got_len, NULL));
}

static void a_session_lives_in_a_vault(wraith_vault_t vault)
{
    struct two two;
    uint8_t message[100], got[100];
    size_t len;
    uint64_t before, after;
    wraith_session_t loaded;
    shake_hands(&two);
    GIVES(WRAITH_NOT_FOUND, wraith_session_load(vault, NAME, &loaded));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_keep(two.session[0], vault, (const uint8_t *)"a/b", 3));
    OK(wraith_session_keep(two.session[0], vault, NAME));
    GIVES(WRAITH_INVALID_STATE, wraith_session_keep(two.session[0], vault, (const uint8_t *)"other", 5));
    GIVES(WRAITH_INVALID_STATE, wraith_session_stored(two.session[0]));
    GIVES(WRAITH_CONFLICT, wraith_session_keep(two.session[1], vault, NAME));
    pass_text(two.session[0], two.session[1], "hello");
    pass_text(two.session[1], two.session[0], "hello yourself");
    OK(wraith_session_seal(two.session[0], NULLS, NULLS, message, sizeof message, &len, &before));
    OK(wraith_session_open(two.session[1], NULLS, message, len, got, sizeof got, &len, NULL));
    OK(wraith_session_seal(two.session[1], NULLS, NULLS, message, sizeof message, &len, NULL));
    size_t message_len = len;
    OK(wraith_session_open(two.session[0], NULLS, message, message_len, got, sizeof got, &len, NULL));
    // The process ends at any time; another one continues.
    OK(wraith_session_free(two.session[0]));
    OK(wraith_session_load(vault, NAME, &two.session[0]));
    GIVES(WRAITH_REPLAYED, wraith_session_open(two.session[0], NULLS, message, message_len, got, sizeof got, &len, NULL));
    OK(wraith_session_seal(two.session[0], NULLS, NULLS, message, sizeof message, &len, &after));
    CHECK(after > before);
    for (int at = 0; at < 700; at++)
        pass_text(two.session[0], two.session[1], "on and on");
    part(&two);
    OK(wraith_vault_remove(vault, NAME));
    OK(wraith_vault_remove(vault, NAME));
    GIVES(WRAITH_NOT_FOUND, wraith_session_load(vault, NAME, &loaded));
}

static wraith_session_t kept;

// A vault must not use the session that calls it.
static void use_the_session_that_is_kept(void)
{
    uint8_t out[64];
    size_t len;
    GIVES(WRAITH_INVALID_STATE, wraith_session_seal(kept, NULLS, NULLS, out, sizeof out, &len, NULL));
}

static wraith_vault_t kept_in;

// The call that needs the vault still ends.
static void free_the_session_that_is_kept(void)
{
    OK(wraith_session_free(kept));
    OK(wraith_vault_free(kept_in));
    GIVES(WRAITH_INVALID_HANDLE, wraith_session_free(kept));
}

static void a_vault_can_free_its_session_and_itself(void)
{
    static struct shelf shelf;
    wraith_vault_callbacks_t functions = shelf_functions(&shelf);
    struct two two;
    uint8_t message[64], got[64];
    size_t len, got_len;
    OK(wraith_vault_new(&functions, &kept_in));
    shake_hands(&two);
    OK(wraith_session_keep(two.session[0], kept_in, NAME));
    kept = two.session[0];
    OK(wraith_session_seal(two.session[1], NULLS, NULLS, message, sizeof message, &len, NULL));
    shelf.calls_back = free_the_session_that_is_kept;
    OK(wraith_session_open(kept, NULLS, message, len, got, sizeof got, &got_len, NULL));
    GIVES(WRAITH_INVALID_HANDLE, wraith_session_open(kept, NULLS, message, len, got, sizeof got, &got_len, NULL));
    CHECK(shelf.released == 1);
    OK(wraith_session_free(two.session[1]));
    for (int side = 0; side < 2; side++) {
        OK(wraith_handshake_free(two.handshake[side]));
        OK(wraith_identity_free(two.identity[side]));
    }
}

static void the_caller_s_own_vault(void)
{
    static struct shelf shelf;
    wraith_vault_callbacks_t functions = shelf_functions(&shelf);
    wraith_vault_t vault;
    OK(wraith_vault_new(&functions, &vault));
    a_session_lives_in_a_vault(vault);
    struct two two;
    uint8_t message[64], got[64];
    size_t len, got_len;
    shake_hands(&two);
    OK(wraith_session_keep(two.session[0], vault, NAME));
    kept = two.session[0];
    shelf.calls_back = use_the_session_that_is_kept;
    OK(wraith_session_seal(two.session[1], NULLS, NULLS, message, sizeof message, &len, NULL));
    shelf.fails = 1;
    // A failing vault changes nothing: the same message opens when the vault works again.
    GIVES(WRAITH_VAULT_FAILED, wraith_session_open(two.session[0], NULLS, message, len, got, sizeof got, &got_len, NULL));
    shelf.fails = 0;
    int stores = shelf.stores;
    OK(wraith_session_open(two.session[0], NULLS, message, len, got, sizeof got, &got_len, NULL));
    CHECK(shelf.stores == stores + 1);
    OK(wraith_vault_free(vault));
    GIVES(WRAITH_INVALID_HANDLE, wraith_vault_free(vault));
    CHECK(shelf.released == 0);
    part(&two);
    CHECK(shelf.released == 1);
    functions.load = NULL;
    GIVES(WRAITH_INVALID_INPUT, wraith_vault_new(&functions, &vault));
    GIVES(WRAITH_INVALID_INPUT, wraith_vault_new(NULL, &vault));
}

static size_t say(wraith_ratchet_t ratchet, const char *words, uint8_t *message, size_t cap)
{
    size_t room, len, told;
    OK(wraith_ratchet_room(strlen(words), &room));
    CHECK(room <= cap);
    GIVES(WRAITH_BUFFER_TOO_SMALL,
          wraith_ratchet_encrypt(ratchet, NULLS, (const uint8_t *)words, strlen(words), message, room - 1, &told));
    CHECK(told == room);
    OK(wraith_ratchet_encrypt(ratchet, NULLS, (const uint8_t *)words, strlen(words), message, cap, &len));
    CHECK(len <= room);
    return len;
}

static void hear(wraith_ratchet_t ratchet, const uint8_t *message, size_t len, const char *words)
{
    uint8_t got[4000];
    size_t told;
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_ratchet_decrypt(ratchet, NULLS, message, len, got, 1, &told));
    OK(wraith_ratchet_decrypt(ratchet, NULLS, message, len, got, sizeof got, &told));
    CHECK(told == strlen(words) && memcmp(got, words, told) == 0);
    GIVES(WRAITH_REPLAYED, wraith_ratchet_decrypt(ratchet, NULLS, message, len, got, sizeof got, &told));
}

static void a_conversation_begins_while_one_side_is_away(void)
{
    wraith_identity_t anna, bert;
    wraith_prekeys_t prekeys, restored;
    wraith_ratchet_t annas, berts, again;
    uint8_t bundle[WRAITH_BUNDLE_MAX], first[4000], second[4000], got[4000], id[32], other[32];
    uint8_t *saved = malloc(500000);
    size_t len, bundle_len, first_len, second_len, remaining;
    CHECK(saved != NULL);
    OK(wraith_identity_generate(&anna));
    OK(wraith_identity_generate(&bert));
    OK(wraith_prekeys_generate(bert, 3, &prekeys));
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_prekeys_bundle(prekeys, bundle, 10, &len));
    OK(wraith_prekeys_remaining(prekeys, &remaining));
    CHECK(remaining == 3);
    OK(wraith_prekeys_bundle(prekeys, bundle, sizeof bundle, &bundle_len));
    OK(wraith_prekeys_remaining(prekeys, &remaining));
    CHECK(remaining == 2);
    OK(wraith_prekeys_save(prekeys, saved, 500000, &len));
    OK(wraith_prekeys_restore(saved, len, &restored));
    OK(wraith_prekeys_free(prekeys));
    bundle[50] ^= 1;
    GIVES(WRAITH_UNAUTHENTIC, wraith_ratchet_initiate(anna, bundle, bundle_len, &annas));
    bundle[50] ^= 1;
    OK(wraith_ratchet_initiate(anna, bundle, bundle_len, &annas));
    first_len = say(annas, "are you there?", first, sizeof first);
    second_len = say(annas, "hello?", second, sizeof second);
    OK(wraith_ratchet_initiator_of(first, first_len, id, sizeof id, &len));
    OK(wraith_identity_node_id(anna, other, sizeof other, &len));
    CHECK(memcmp(id, other, sizeof id) == 0);
    GIVES(WRAITH_INVALID_INPUT,
          wraith_ratchet_respond(anna, restored, NULLS, first, first_len, got, sizeof got, &len, &berts));
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_ratchet_respond(bert, restored, NULLS, first, first_len, got, 1, &len, &berts));
    OK(wraith_ratchet_respond(bert, restored, NULLS, first, first_len, got, sizeof got, &len, &berts));
    CHECK(len == 14 && memcmp(got, "are you there?", len) == 0);
    GIVES(WRAITH_NOT_FOUND, wraith_ratchet_respond(bert, restored, NULLS, first, first_len, got, sizeof got, &len, &again));
    hear(berts, second, second_len, "hello?");
    OK(wraith_ratchet_binding(annas, id, sizeof id, &len));
    OK(wraith_ratchet_binding(berts, other, sizeof other, &len));
    CHECK(memcmp(id, other, sizeof id) == 0);
    OK(wraith_ratchet_set_padding(berts, 1));
    for (int turn = 0; turn < 5; turn++) {
        len = say(berts, "I am, now", first, sizeof first);
        hear(annas, first, len, "I am, now");
        OK(wraith_ratchet_save(annas, saved, 500000, &len));
        OK(wraith_ratchet_restore(saved, len, &again));
        OK(wraith_ratchet_free(annas));
        annas = again;
        len = say(annas, "good", first, sizeof first);
        hear(berts, first, len, "good");
    }
    OK(wraith_prekeys_replenish(restored, bert, 5));
    GIVES(WRAITH_INVALID_INPUT, wraith_prekeys_rotate(restored, anna));
    OK(wraith_prekeys_rotate(restored, bert));
    OK(wraith_prekeys_remaining(restored, &remaining));
    CHECK(remaining == 5);
    OK(wraith_ratchet_free(annas));
    OK(wraith_ratchet_free(berts));
    OK(wraith_prekeys_free(restored));
    OK(wraith_identity_free(anna));
    OK(wraith_identity_free(bert));
    free(saved);
}

static void a_sealed_box_is_for_one(void)
{
    wraith_identity_t anna, bert;
    uint8_t id[32], sealed[100], got[100];
    const uint8_t *what = (const uint8_t *)"a test", *words = (const uint8_t *)"for anna";
    size_t len, got_len;
    OK(wraith_identity_generate(&anna));
    OK(wraith_identity_generate(&bert));
    OK(wraith_identity_node_id(anna, id, sizeof id, &len));
    OK(wraith_sealed_box_seal(id, sizeof id, what, 6, words, 8, sealed, sizeof sealed, &len));
    CHECK(len == 8 + WRAITH_SEALED_BOX_OVERHEAD);
    OK(wraith_sealed_box_open(anna, what, 6, sealed, len, got, 8, &got_len));
    CHECK(got_len == 8 && memcmp(got, words, 8) == 0);
    GIVES(WRAITH_UNAUTHENTIC, wraith_sealed_box_open(bert, what, 6, sealed, len, got, 8, &got_len));
    GIVES(WRAITH_UNAUTHENTIC, wraith_sealed_box_open(anna, what, 5, sealed, len, got, 8, &got_len));
    GIVES(WRAITH_UNAUTHENTIC, wraith_sealed_box_open(anna, NULLS, NULLS, got, 8, &got_len));
    OK(wraith_sealed_box_seal(id, sizeof id, NULLS, NULLS, sealed, sizeof sealed, &len));
    OK(wraith_sealed_box_open(anna, NULLS, sealed, len, NULLS, &got_len));
    CHECK(got_len == 0);
    OK(wraith_identity_free(anna));
    OK(wraith_identity_free(bert));
}

int main(int count, char **words)
{
    CHECK(count == 2);
    wraith_vault_t vault, second;
    OK(wraith_vault_folder((const uint8_t *)words[1], strlen(words[1]), &vault));
    a_session_lives_in_a_vault(vault);
    GIVES(WRAITH_INVALID_INPUT, wraith_vault_folder(NULLS, &second));
    OK(wraith_vault_free(vault));
    the_caller_s_own_vault();
    a_vault_can_free_its_session_and_itself();
    a_conversation_begins_while_one_side_is_away();
    a_sealed_box_is_for_one();
    puts("lasting: all as it should be");
    return 0;
}
