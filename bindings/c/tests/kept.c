// Conversations and prekeys in a vault: their state after a process ends at any moment, or after the vault fails; and
// many messages in one call. `kept FOLDER` works in an empty folder.

#include "shelf.h"

#define NULLS NULL, 0
#define ANNA (const uint8_t *)"anna", 4
#define BERT (const uint8_t *)"bert", 4
#define KEYS (const uint8_t *)"prekeys", 7

static uint8_t first[4000], message[4000], got[4000];
static size_t first_len, message_len, len;

static void say(wraith_ratchet_t from, const char *words)
{
    OK(wraith_ratchet_encrypt(from, NULLS, (const uint8_t *)words, strlen(words), message, sizeof message, &message_len));
}

static void hear(wraith_ratchet_t to, const char *words)
{
    OK(wraith_ratchet_decrypt(to, NULLS, message, message_len, got, sizeof got, &len));
    CHECK(len == strlen(words) && memcmp(got, words, len) == 0);
    GIVES(WRAITH_REPLAYED, wraith_ratchet_decrypt(to, NULLS, message, message_len, got, sizeof got, &len));
}

// Anna starts a conversation with Bert, who is offline: `first` is her first message.
static wraith_ratchet_t anna_asks(wraith_vault_t vault, wraith_identity_t anna, wraith_prekeys_t berts)
{
    uint8_t bundle[WRAITH_BUNDLE_MAX];
    size_t bundle_len;
    wraith_ratchet_t annas;
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_prekeys_bundle(berts, bundle, 10, &len));
    OK(wraith_prekeys_bundle(berts, bundle, sizeof bundle, &bundle_len));
    GIVES(WRAITH_INVALID_INPUT,
          wraith_ratchet_initiate_in_vault(vault, (const uint8_t *)"a/b", 3, anna, bundle, bundle_len, &annas));
    OK(wraith_ratchet_initiate_in_vault(vault, BERT, anna, bundle, bundle_len, &annas));
    GIVES(WRAITH_CONFLICT, wraith_ratchet_initiate_in_vault(vault, BERT, anna, bundle, bundle_len, &annas));
    say(annas, "are you there?");
    memcpy(first, message, message_len);
    first_len = message_len;
    return annas;
}

// For the library, each step runs in a new process.
static void a_conversation_lives_in_a_vault(wraith_vault_t vault)
{
    wraith_identity_t anna, bert;
    wraith_prekeys_t keys;
    wraith_ratchet_t annas, berts, again;
    size_t remaining;
    OK(wraith_identity_generate(&anna));
    OK(wraith_identity_generate(&bert));
    GIVES(WRAITH_NOT_FOUND, wraith_prekeys_load(vault, KEYS, &keys));
    GIVES(WRAITH_INVALID_INPUT, wraith_prekeys_generate_in_vault(vault, KEYS, bert, WRAITH_ONE_TIME_MAX + 1, &keys));
    OK(wraith_prekeys_generate_in_vault(vault, KEYS, bert, 3, &keys));
    GIVES(WRAITH_CONFLICT, wraith_prekeys_generate_in_vault(vault, KEYS, bert, 3, &again));
    annas = anna_asks(vault, anna, keys);
    OK(wraith_prekeys_free(keys));
    OK(wraith_prekeys_load(vault, KEYS, &keys));
    OK(wraith_prekeys_remaining(keys, &remaining));
    CHECK(remaining == 2); // the state remembers that one was handed out
    GIVES(WRAITH_INVALID_STATE, wraith_prekeys_save(keys, got, sizeof got, &len));
    GIVES(WRAITH_INVALID_STATE, wraith_prekeys_keep(keys, vault, (const uint8_t *)"other", 5));
    GIVES(WRAITH_INVALID_STATE, wraith_ratchet_respond(bert, keys, NULLS, first, first_len, got, sizeof got, &len, &berts));
    GIVES(WRAITH_BUFFER_TOO_SMALL,
          wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, first, first_len, got, 1, &len, &berts));
    GIVES(WRAITH_NOT_FOUND, wraith_ratchet_load(vault, ANNA, &berts));
    OK(wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, first, first_len, got, sizeof got, &len, &berts));
    CHECK(len == 14 && memcmp(got, "are you there?", len) == 0);
    GIVES(WRAITH_NOT_FOUND,
          wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, first, first_len, got, sizeof got, &len, &again));
    GIVES(WRAITH_NOT_FOUND, wraith_session_load(vault, (const uint8_t *)"nobody", 6, &again));
    GIVES(WRAITH_INVALID_INPUT, wraith_session_load(vault, ANNA, &again)); // of another kind
    OK(wraith_ratchet_set_padding(berts, 1));
    for (int turn = 0; turn < 5; turn++) {
        say(berts, "I am, now");
        OK(wraith_ratchet_free(annas));
        OK(wraith_ratchet_load(vault, BERT, &annas));
        hear(annas, "I am, now");
        say(annas, "good");
        OK(wraith_ratchet_free(berts));
        OK(wraith_ratchet_load(vault, ANNA, &berts));
        OK(wraith_ratchet_set_time(berts, 1000u * (uint64_t)turn));
        hear(berts, "good");
    }
    GIVES(WRAITH_INVALID_STATE, wraith_ratchet_save(berts, got, sizeof got, &len));
    // If two handles continue the same conversation, one fails before it returns any output.
    OK(wraith_ratchet_load(vault, ANNA, &again));
    say(berts, "from the one");
    GIVES(WRAITH_CONFLICT, wraith_ratchet_encrypt(again, NULLS, NULLS, got, sizeof got, &len));
    hear(annas, "from the one");
    OK(wraith_ratchet_free(again));
    OK(wraith_prekeys_replenish(keys, bert, 5));
    OK(wraith_prekeys_rotate(keys, bert));
    OK(wraith_prekeys_free(keys));
    OK(wraith_prekeys_load(vault, KEYS, &keys));
    OK(wraith_prekeys_remaining(keys, &remaining));
    CHECK(remaining == 5);
    OK(wraith_prekeys_free(keys));
    OK(wraith_ratchet_free(annas));
    OK(wraith_ratchet_free(berts));
    OK(wraith_identity_free(anna));
    OK(wraith_identity_free(bert));
    OK(wraith_vault_remove(vault, ANNA));
    OK(wraith_vault_remove(vault, BERT));
    OK(wraith_vault_remove(vault, KEYS));
}

// A conversation saved as bytes moves into a vault and continues as before.
static void what_was_in_memory_is_kept_from_now_on(wraith_vault_t vault)
{
    wraith_identity_t anna, bert;
    wraith_prekeys_t keys;
    wraith_ratchet_t annas, berts;
    uint8_t bundle[WRAITH_BUNDLE_MAX];
    size_t bundle_len;
    OK(wraith_identity_generate(&anna));
    OK(wraith_identity_generate(&bert));
    OK(wraith_prekeys_generate(bert, 1, &keys));
    OK(wraith_prekeys_bundle(keys, bundle, sizeof bundle, &bundle_len));
    OK(wraith_ratchet_initiate(anna, bundle, bundle_len, &annas));
    say(annas, "hello");
    GIVES(WRAITH_INVALID_STATE,
          wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, message, message_len, got, sizeof got, &len, &berts));
    OK(wraith_prekeys_keep(keys, vault, KEYS));
    OK(wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, message, message_len, got, sizeof got, &len, &berts));
    GIVES(WRAITH_CONFLICT, wraith_ratchet_keep(annas, vault, ANNA));
    say(annas, "still in memory");
    hear(berts, "still in memory");
    OK(wraith_ratchet_keep(annas, vault, BERT));
    GIVES(WRAITH_INVALID_STATE, wraith_ratchet_keep(annas, vault, (const uint8_t *)"other", 5));
    OK(wraith_ratchet_free(annas));
    OK(wraith_ratchet_load(vault, BERT, &annas));
    say(annas, "from the vault");
    hear(berts, "from the vault");
    OK(wraith_ratchet_free(annas));
    OK(wraith_ratchet_free(berts));
    OK(wraith_prekeys_free(keys));
    OK(wraith_identity_free(anna));
    OK(wraith_identity_free(bert));
    OK(wraith_vault_remove(vault, ANNA));
    OK(wraith_vault_remove(vault, BERT));
    OK(wraith_vault_remove(vault, KEYS));
}

static wraith_ratchet_t in_use;

static void use_what_is_in_use(void)
{
    uint8_t out[3000];
    size_t out_len;
    if (in_use != 0)
        GIVES(WRAITH_INVALID_STATE, wraith_ratchet_encrypt(in_use, NULLS, NULLS, out, sizeof out, &out_len));
}

static void a_vault_that_fails_changes_nothing(void)
{
    static struct shelf shelf;
    wraith_vault_callbacks_t functions = shelf_functions(&shelf);
    wraith_vault_t vault;
    wraith_identity_t anna, bert;
    wraith_prekeys_t keys;
    wraith_ratchet_t annas, berts;
    size_t remaining;
    uint8_t bundle[WRAITH_BUNDLE_MAX];
    shelf.calls_back = use_what_is_in_use;
    OK(wraith_vault_new(&functions, &vault));
    OK(wraith_identity_generate(&anna));
    OK(wraith_identity_generate(&bert));
    OK(wraith_prekeys_generate_in_vault(vault, KEYS, bert, 2, &keys));
    shelf.fails = 1;
    GIVES(WRAITH_VAULT_FAILED, wraith_prekeys_bundle(keys, bundle, sizeof bundle, &len));
    shelf.fails = 0;
    OK(wraith_prekeys_remaining(keys, &remaining));
    CHECK(remaining == 2);
    annas = anna_asks(vault, anna, keys);
    // The conversation is stored but its prekeys are not: the same message continues the conversation.
    shelf.fails = 1;
    shelf.fails_for = "prekeys";
    GIVES(WRAITH_VAULT_FAILED,
          wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, first, first_len, got, sizeof got, &len, &berts));
    shelf.fails = 0;
    shelf.fails_for = NULL;
    OK(wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, first, first_len, got, sizeof got, &len, &berts));
    CHECK(len == 14 && memcmp(got, "are you there?", len) == 0);
    say(annas, "hello");
    in_use = berts;
    shelf.fails = 1;
    GIVES(WRAITH_VAULT_FAILED, wraith_ratchet_decrypt(berts, NULLS, message, message_len, got, sizeof got, &len));
    GIVES(WRAITH_VAULT_FAILED, wraith_ratchet_encrypt(berts, NULLS, NULLS, got, sizeof got, &len));
    shelf.fails = 0;
    int stores = shelf.stores;
    hear(berts, "hello");
    CHECK(shelf.stores == stores + 1);
    say(berts, "yourself");
    in_use = 0;
    hear(annas, "yourself");
    OK(wraith_prekeys_free(keys));
    OK(wraith_ratchet_free(annas));
    OK(wraith_vault_free(vault));
    CHECK(shelf.released == 0);
    OK(wraith_ratchet_free(berts));
    CHECK(shelf.released == 1);
    OK(wraith_identity_free(anna));
    OK(wraith_identity_free(bert));
}

enum { COUNT = 6 };

static void check_text(const uint8_t *texts, wraith_ratchet_result_t result, const char *words)
{
    CHECK(result.status == WRAITH_OK && result.len == strlen(words) && memcmp(texts + result.offset, words, result.len) == 0);
}

// In order, with a result for each message. `stores` counts the receiver's stores, if it uses a vault.
static void pass_many(wraith_ratchet_t from, wraith_ratchet_t to, const int *stores)
{
    static uint8_t sealed[20000], texts[20000];
    static uint8_t huge[(16 << 20) + 1];
    wraith_bytes_t words[3] = {text("one"), {NULL, 0}, text("three")}, messages[COUNT];
    wraith_ratchet_result_t results[COUNT], opened[COUNT];
    size_t sealed_len, texts_len, failed = 99;
    // If one message cannot be encrypted, none is, and its index is returned.
    wraith_bytes_t bad[3] = {words[0], words[1], {huge, sizeof huge}};
    GIVES(WRAITH_INVALID_INPUT,
          wraith_ratchet_encrypt_many(from, NULLS, bad, 3, sealed, sizeof sealed, &sealed_len, results, &failed));
    CHECK(failed == 2);
    GIVES(WRAITH_INVALID_INPUT,
          wraith_ratchet_encrypt_many(from, NULLS, bad, 3, sealed, sizeof sealed, &sealed_len, results, NULL));
    GIVES(WRAITH_BUFFER_TOO_SMALL,
          wraith_ratchet_encrypt_many(from, NULLS, words, 3, sealed, 100, &sealed_len, results, NULL));
    CHECK(sealed_len <= sizeof sealed);
    failed = 99;
    OK(wraith_ratchet_encrypt_many(from, NULLS, words, 3, sealed, sealed_len, &sealed_len, results, &failed));
    CHECK(failed == 99 && results[0].offset == 0 && results[2].offset + results[2].len == sealed_len);
    for (int at = 0; at < 3; at++)
        messages[at] = (wraith_bytes_t){sealed + results[at].offset, results[at].len};
    messages[3] = messages[0];
    messages[4] = text("no message at all");
    messages[5] = (wraith_bytes_t){messages[2].data, messages[2].len - 1};
    int before = stores != NULL ? *stores : 0;
    GIVES(WRAITH_BUFFER_TOO_SMALL,
          wraith_ratchet_decrypt_many(to, NULLS, messages, COUNT, texts, 3, &texts_len, opened));
    OK(wraith_ratchet_decrypt_many(to, NULLS, messages, COUNT, texts, texts_len, &texts_len, opened));
    CHECK(texts_len == 8);
    check_text(texts, opened[0], "one");
    check_text(texts, opened[1], "");
    check_text(texts, opened[2], "three");
    CHECK(opened[3].status == WRAITH_REPLAYED && opened[4].status == WRAITH_UNAUTHENTIC);
    CHECK(opened[5].status != WRAITH_OK && opened[5].len == 0);
    CHECK(stores == NULL || *stores == before + 1);
    OK(wraith_ratchet_encrypt_many(from, NULLS, NULLS, NULLS, &sealed_len, NULL, NULL));
    OK(wraith_ratchet_decrypt_many(to, NULLS, NULLS, NULLS, &texts_len, NULL));
    CHECK(sealed_len == 0 && texts_len == 0);
}

static void many_messages_at_once(void)
{
    static struct shelf shelf;
    wraith_vault_callbacks_t functions = shelf_functions(&shelf);
    wraith_vault_t vault;
    wraith_identity_t anna, bert;
    wraith_prekeys_t keys;
    wraith_ratchet_t annas, berts;
    uint8_t bundle[WRAITH_BUNDLE_MAX], sealed[6000];
    wraith_bytes_t words[1] = {text("again")}, messages[1];
    wraith_ratchet_result_t result, opened;
    size_t bundle_len;
    OK(wraith_vault_new(&functions, &vault));
    OK(wraith_identity_generate(&anna));
    OK(wraith_identity_generate(&bert));
    OK(wraith_prekeys_generate_in_vault(vault, KEYS, bert, 2, &keys));
    OK(wraith_prekeys_bundle(keys, bundle, sizeof bundle, &bundle_len));
    OK(wraith_ratchet_initiate(anna, bundle, bundle_len, &annas));
    say(annas, "hello");
    OK(wraith_ratchet_respond_in_vault(vault, ANNA, bert, keys, NULLS, message, message_len, got, sizeof got, &len, &berts));
    pass_many(annas, berts, &shelf.stores);
    pass_many(berts, annas, NULL);
    pass_many(annas, berts, &shelf.stores);
    // If the vault fails, nothing is encrypted or decrypted, and the same call succeeds later.
    OK(wraith_ratchet_encrypt_many(annas, NULLS, words, 1, sealed, sizeof sealed, &len, &result, NULL));
    messages[0] = (wraith_bytes_t){sealed, result.len};
    shelf.fails = 1;
    GIVES(WRAITH_VAULT_FAILED, wraith_ratchet_decrypt_many(berts, NULLS, messages, 1, got, sizeof got, &len, &opened));
    GIVES(WRAITH_VAULT_FAILED, wraith_ratchet_encrypt_many(berts, NULLS, words, 1, got, sizeof got, &len, &opened, NULL));
    shelf.fails = 0;
    OK(wraith_ratchet_decrypt_many(berts, NULLS, messages, 1, got, sizeof got, &len, &opened));
    check_text(got, opened, "again");
    OK(wraith_prekeys_free(keys));
    OK(wraith_ratchet_free(annas));
    OK(wraith_ratchet_free(berts));
    OK(wraith_vault_free(vault));
    OK(wraith_identity_free(anna));
    OK(wraith_identity_free(bert));
}

int main(int count, char **words)
{
    wraith_vault_t vault;
    CHECK(count == 2);
    OK(wraith_vault_folder((const uint8_t *)words[1], strlen(words[1]), &vault));
    a_conversation_lives_in_a_vault(vault);
    what_was_in_memory_is_kept_from_now_on(vault);
    OK(wraith_vault_free(vault));
    a_vault_that_fails_changes_nothing();
    many_messages_at_once();
    puts("kept: all as it should be");
    return 0;
}
