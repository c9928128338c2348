// The test vectors of all languages. `vectors FOLDER` reads them from that folder. They are flat lists of objects with
// fields in a known order, so a simple scanner is enough.

#include "test.h"

// Returns the text after the next `"key": `, or NULL.
static char *behind(char *text, const char *key)
{
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    char *found = text == NULL ? NULL : strstr(text, quoted);
    return found == NULL ? NULL : found + strlen(quoted);
}

struct bytes {
    uint8_t *data;
    size_t len;
};

// Copies the string that begins at `at`, without its quotes.
static struct bytes string(char *at)
{
    CHECK(at != NULL && *at == '"');
    struct bytes words = {(uint8_t *)at + 1, strcspn(at + 1, "\"")};
    return words;
}

// Decodes the hexadecimal string that begins at `at`.
static struct bytes hex(char *at)
{
    struct bytes digits = string(at), bytes = {malloc(digits.len / 2 + 1), digits.len / 2};
    CHECK(bytes.data != NULL && digits.len % 2 == 0);
    for (size_t index = 0; index < bytes.len; index++) {
        unsigned value;
        CHECK(sscanf((char *)digits.data + 2 * index, "%2x", &value) == 1);
        bytes.data[index] = (uint8_t)value;
    }
    return bytes;
}

static void check_hex(char *at, const uint8_t *data, size_t len)
{
    struct bytes wanted = hex(at);
    CHECK(wanted.len == len && memcmp(wanted.data, data, len) == 0);
    free(wanted.data);
}

static void hashes(char *text)
{
    while ((text = behind(text, "length")) != NULL) {
        size_t len = strtoul(text, NULL, 10), got;
        uint8_t *data = malloc(len + 1), hash[WRAITH_HASH_BYTES];
        wraith_hasher_t hasher;
        CHECK(data != NULL);
        for (size_t at = 0; at < len; at++)
            data[at] = (uint8_t)(at % 251);
        OK(wraith_hash(data, len, hash, sizeof hash, &got));
        check_hex(behind(text, "hash"), hash, got);
        OK(wraith_hasher_new(&hasher));
        for (size_t at = 0; at < len; at += 1000)
            OK(wraith_hasher_update(hasher, data + at, len - at < 1000 ? len - at : 1000));
        OK(wraith_hasher_finish(hasher, hash, sizeof hash, &got));
        check_hex(behind(text, "hash"), hash, got);
        OK(wraith_hasher_free(hasher));
        free(data);
    }
}

static void identities(char *text)
{
    while ((text = behind(text, "seed")) != NULL) {
        struct bytes seed = hex(text), name = string(behind(text, "node_id")), message = hex(behind(text, "message"));
        wraith_identity_t identity;
        uint8_t id[WRAITH_NODE_ID_BYTES], words[WRAITH_NODE_ID_TEXT], signature[WRAITH_SIGNATURE_BYTES];
        size_t len;
        OK(wraith_identity_from_seed(seed.data, seed.len, &identity));
        OK(wraith_identity_node_id(identity, id, sizeof id, &len));
        OK(wraith_node_id_to_text(id, len, words, sizeof words, &len));
        CHECK(len == name.len && memcmp(words, name.data, len) == 0);
        OK(wraith_identity_sign(identity, message.data, message.len, signature, sizeof signature, &len));
        check_hex(behind(text, "signature"), signature, len);
        OK(wraith_identity_free(identity));
        free(seed.data);
        free(message.data);
    }
}

static void boxes(char *text)
{
    while ((text = behind(text, "seed")) != NULL) {
        struct bytes seed = hex(text), context = hex(behind(text, "context")), box = hex(behind(text, "box"));
        wraith_identity_t identity;
        uint8_t opened[2000];
        size_t len;
        OK(wraith_identity_from_seed(seed.data, seed.len, &identity));
        OK(wraith_sealed_box_open(identity, context.data, context.len, box.data, box.len, opened, sizeof opened, &len));
        check_hex(behind(text, "text"), opened, len);
        OK(wraith_identity_free(identity));
        free(seed.data);
        free(context.data);
        free(box.data);
    }
}

// Returns the next string of a list, or NULL at its end.
static char *next_item(char **list)
{
    char *item = *list + strcspn(*list, "\"]");
    if (*item != '"')
        return NULL;
    *list = item + 1 + strcspn(item + 1, "\"") + 1;
    return item;
}

typedef wraith_status_t open_fn(uint64_t, const uint8_t *, size_t, const uint8_t *, size_t, uint8_t *, size_t, size_t *);

static wraith_status_t open_of_session(uint64_t session, const uint8_t *aad, size_t aad_len, const uint8_t *message,
                                       size_t message_len, uint8_t *out, size_t cap, size_t *len)
{
    return wraith_session_open(session, aad, aad_len, message, message_len, out, cap, len, NULL);
}

static void saved(char *text, wraith_status_t (*restore)(const uint8_t *, size_t, uint64_t *), open_fn *open,
                  wraith_status_t (*release)(uint64_t))
{
    while ((text = behind(text, "saved")) != NULL) {
        struct bytes state = hex(text), aad = hex(behind(text, "aad"));
        char *messages = behind(text, "messages"), *texts = behind(text, "texts"), *item;
        uint64_t handle;
        int count = 0;
        CHECK(messages != NULL && texts != NULL);
        OK(restore(state.data, state.len, &handle));
        while ((item = next_item(&messages)) != NULL) {
            struct bytes message = hex(item);
            uint8_t opened[4000];
            size_t len;
            OK(open(handle, aad.data, aad.len, message.data, message.len, opened, sizeof opened, &len));
            check_hex(next_item(&texts), opened, len);
            free(message.data);
            count++;
        }
        CHECK(count > 0 && next_item(&texts) == NULL);
        OK(release(handle));
        free(state.data);
        free(aad.data);
    }
}

static char *load(const char *folder, const char *name)
{
    char path[500];
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    CHECK(size > 2 && size < 10000000);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    CHECK(text != NULL && fread(text, 1, (size_t)size, file) == (size_t)size);
    text[size] = 0;
    fclose(file);
    return text;
}

int main(int count, char **words)
{
    CHECK(count == 2);
    static const char *names[] = {"hashes", "identities", "boxes", "sessions", "ratchets"};
    static const char *first[] = {"length", "seed", "seed", "saved", "saved"};
    for (int at = 0; at < 5; at++) {
        char *text = load(words[1], names[at]);
        CHECK(behind(text, first[at]) != NULL);
        switch (at) {
        case 0: hashes(text); break;
        case 1: identities(text); break;
        case 2: boxes(text); break;
        case 3: saved(text, wraith_session_restore, open_of_session, wraith_session_free); break;
        case 4: saved(text, wraith_ratchet_restore, wraith_ratchet_decrypt, wraith_ratchet_free); break;
        }
        free(text);
    }
    puts("vectors: all as it should be");
    return 0;
}
