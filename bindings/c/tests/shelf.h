// An in-memory vault of a few records. It can be set to fail, and to call a function for each store.
#ifndef SHELF_H
#define SHELF_H

#include "test.h"

enum { SHELF_RECORDS = 4, SHELF_RECORD_MAX = 40000 };

struct shelf {
    struct {
        char name[64];
        size_t name_len, len; // a slot is free if `len` is 0
        uint64_t generation;
        uint8_t record[SHELF_RECORD_MAX];
    } places[SHELF_RECORDS];
    int fails, stores, released;
    // Name of the only record that fails to be stored, if `fails`; NULL for all.
    const char *fails_for;
    void (*calls_back)(void);
};

// Returns the slot of this name, or a free one.
static inline int shelf_place(const struct shelf *shelf, wraith_bytes_t name)
{
    int place = -1;
    for (int at = 0; at < SHELF_RECORDS; at++) {
        if (shelf->places[at].len == 0)
            place = at;
        else if (shelf->places[at].name_len == name.len && memcmp(shelf->places[at].name, name.data, name.len) == 0)
            return at;
    }
    CHECK(place >= 0);
    return place;
}

static inline int32_t shelf_store(void *user, wraith_bytes_t name, uint64_t generation, wraith_bytes_t record,
                                  uint32_t durability)
{
    struct shelf *shelf = user;
    int at = shelf_place(shelf, name);
    CHECK(name.len > 0 && name.len <= 64 && record.len > 0 && record.len <= SHELF_RECORD_MAX && durability <= 1);
    if (shelf->calls_back != NULL)
        shelf->calls_back();
    if (shelf->fails && (shelf->fails_for == NULL || memcmp(shelf->fails_for, name.data, name.len) == 0))
        return WRAITH_OTHER;
    if (shelf->places[at].len > 0 && shelf->places[at].generation >= generation)
        return WRAITH_CONFLICT;
    memcpy(shelf->places[at].name, name.data, name.len);
    shelf->places[at].name_len = name.len;
    memcpy(shelf->places[at].record, record.data, record.len);
    shelf->places[at].len = record.len;
    shelf->places[at].generation = generation;
    shelf->stores++;
    return WRAITH_OK;
}

static inline int32_t shelf_load(void *user, wraith_bytes_t name, uint8_t *out, size_t out_cap, size_t *out_len)
{
    struct shelf *shelf = user;
    int at = shelf_place(shelf, name);
    if (shelf->places[at].len == 0)
        return WRAITH_NOT_FOUND;
    *out_len = shelf->places[at].len;
    if (*out_len > out_cap)
        return WRAITH_BUFFER_TOO_SMALL;
    memcpy(out, shelf->places[at].record, *out_len);
    return WRAITH_OK;
}

static inline int32_t shelf_remove(void *user, wraith_bytes_t name)
{
    struct shelf *shelf = user;
    shelf->places[shelf_place(shelf, name)].len = 0;
    return WRAITH_OK;
}

static inline void shelf_release(void *user)
{
    ((struct shelf *)user)->released++;
}

static inline wraith_vault_callbacks_t shelf_functions(struct shelf *shelf)
{
    wraith_vault_callbacks_t functions = {.struct_size = sizeof functions, .user = shelf, .store = shelf_store,
                                          .load = shelf_load, .remove = shelf_remove, .release = shelf_release};
    return functions;
}

#endif
