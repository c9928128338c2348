// Shared parts of the tests of transfers: callbacks that record events, and can stop their own transfer.
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static char folder[200];

static inline const char *in_folder(char *path, size_t room, const char *name)
{
    int len = snprintf(path, room, "%s/%s", folder, name);
    CHECK(len > 0 && (size_t)len < room);
    return path;
}

enum way { CANCEL, FREE, SHUT_DOWN };

// Events that callbacks recorded. The lock is for the other threads, which read them meanwhile.
struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int files, done, failed, released, asked, progress, is_held;
    int events, accepted, lost, codes_used;
    uint64_t bytes;
    uint32_t stopped_by;
    wraith_status_t status;
    int32_t answer;
    // The callback stops its own transfer once, in this way: at its event number `stop_at`, or once both sides have
    // accepted and `stop_bytes` bytes are settled, if `peer` is set.
    enum way way;
    int stop_at, has_stopped;
    uint64_t stop_bytes;
    struct seen *peer;
    wraith_node_t node;
    wraith_transfer_t transfer;
};

static inline void new_seen(struct seen *seen, int32_t answer)
{
    memset(seen, 0, sizeof *seen);
    pthread_mutex_init(&seen->lock, NULL);
    pthread_cond_init(&seen->changed, NULL);
    seen->answer = answer;
}

// Waits until the field, a counter or flag of `seen`, is not zero.
#define AWAIT(seen, field)                                       \
    do {                                                         \
        pthread_mutex_lock(&(seen)->lock);                       \
        while (!(seen)->field)                                   \
            pthread_cond_wait(&(seen)->changed, &(seen)->lock);  \
        pthread_mutex_unlock(&(seen)->lock);                     \
    } while (0)

static inline void set_transfer(struct seen *seen, wraith_transfer_t transfer)
{
    pthread_mutex_lock(&seen->lock);
    seen->transfer = transfer;
    pthread_cond_broadcast(&seen->changed);
    pthread_mutex_unlock(&seen->lock);
}

static inline void stop(enum way way, wraith_transfer_t transfer, wraith_node_t node)
{
    if (way == CANCEL)
        OK(wraith_transfer_cancel(transfer));
    else if (way == FREE)
        OK(wraith_transfer_free(transfer));
    else
        OK(wraith_node_shutdown(node));
}

static inline void record(struct seen *seen, const wraith_event_t *event)
{
    CHECK(seen->released == 0 && seen->done + seen->failed == 0);
    if (event->kind == WRAITH_EVENT_FILE) {
        CHECK(event->detail == WRAITH_FILE_DONE && event->path.len > 0);
        seen->files++;
    } else if (event->kind == WRAITH_EVENT_CODE_USED) {
        seen->codes_used++;
    } else if (event->kind == WRAITH_EVENT_CONNECTED) {
        CHECK(event->peer.len == WRAITH_NODE_ID_BYTES);
    } else if (event->kind == WRAITH_EVENT_PROGRESS) {
        seen->progress++;
        seen->bytes = event->bytes;
    } else if (event->kind == WRAITH_EVENT_ACCEPTED) {
        seen->accepted = 1;
    } else if (event->kind == WRAITH_EVENT_CONNECTION_LOST) {
        seen->lost = 1;
    } else if (event->kind == WRAITH_EVENT_STOPPED) {
        seen->stopped_by = event->detail;
    } else if (event->kind == WRAITH_EVENT_DONE) {
        seen->done++;
    } else if (event->kind == WRAITH_EVENT_FAILED) {
        seen->failed++;
        seen->status = event->status;
    }
    seen->events++;
    pthread_cond_broadcast(&seen->changed);
}

static inline void on_event(void *user, const wraith_event_t *event)
{
    struct seen *seen = user;
    pthread_mutex_lock(&seen->lock);
    record(seen, event);
    while (seen->is_held)
        pthread_cond_wait(&seen->changed, &seen->lock);
    int is_over = seen->done + seen->failed > 0;
    int is_moment = seen->peer && seen->accepted && seen->bytes >= seen->stop_bytes && !is_over;
    int stops = !seen->has_stopped && (seen->events == seen->stop_at || is_moment);
    while (stops && seen->transfer == 0)
        pthread_cond_wait(&seen->changed, &seen->lock);
    if (stops)
        seen->has_stopped = 1;
    pthread_mutex_unlock(&seen->lock);
    if (!stops)
        return;
    if (seen->peer)
        AWAIT(seen->peer, accepted);
    stop(seen->way, seen->transfer, seen->node);
}

static inline int32_t on_ask(void *user, const wraith_offer_info_t *offer)
{
    struct seen *seen = user;
    CHECK(offer->sender.len == WRAITH_NODE_ID_BYTES && offer->files > 0 && offer->name.len > 0);
    // A callback may call the library.
    uint8_t hash[WRAITH_HASH_BYTES];
    size_t len;
    OK(wraith_hash(offer->name.data, offer->name.len, hash, sizeof hash, &len));
    pthread_mutex_lock(&seen->lock);
    seen->asked++;
    int32_t answer = seen->answer;
    pthread_mutex_unlock(&seen->lock);
    return answer;
}

static inline void on_release(void *user)
{
    struct seen *seen = user;
    pthread_mutex_lock(&seen->lock);
    seen->released++;
    pthread_cond_broadcast(&seen->changed);
    pthread_mutex_unlock(&seen->lock);
}

static inline wraith_callbacks_t callbacks(struct seen *seen)
{
    wraith_callbacks_t all = {sizeof all, seen, on_event, on_ask, on_release};
    return all;
}

static inline wraith_node_t new_node(void)
{
    wraith_node_t node;
    OK(wraith_node_new(NULL, &node));
    return node;
}

static inline wraith_transfer_t offer_one(wraith_node_t node, const char *path, uint32_t to, struct seen *seen)
{
    wraith_offer_options_t options = {.struct_size = sizeof options, .to = to, .bind = text("127.0.0.1:0"),
                                      .progress_ms = 10};
    wraith_callbacks_t told = callbacks(seen);
    wraith_bytes_t paths[] = {text(path)};
    wraith_transfer_t transfer;
    OK(wraith_offer(node, paths, 1, &options, &told, &transfer));
    return transfer;
}

static inline size_t source_of(wraith_transfer_t offer, uint8_t *source, size_t room)
{
    size_t len;
    if (wraith_transfer_ticket(offer, source, room, &len) != WRAITH_OK)
        OK(wraith_transfer_code(offer, source, room, &len));
    return len;
}

static inline wraith_transfer_t fetch_from(wraith_node_t node, const uint8_t *source, size_t len, const char *into,
                                           struct seen *seen)
{
    wraith_fetch_options_t options = {.struct_size = sizeof options, .no_sync = 1, .progress_ms = 10};
    wraith_callbacks_t told = callbacks(seen);
    wraith_transfer_t transfer;
    OK(wraith_fetch(node, source, len, (const uint8_t *)into, strlen(into), &options, &told, &transfer));
    return transfer;
}

static inline wraith_transfer_t fetch(wraith_node_t node, wraith_transfer_t offer, const char *into, struct seen *seen)
{
    uint8_t source[2000];
    size_t len = source_of(offer, source, sizeof source);
    return fetch_from(node, source, len, into, seen);
}

// Waits until the library has no threads left: everything was freed. valgrind takes a running thread for a leak.
static inline void await_end_of_threads(void)
{
    const struct timespec moment = {0, 5000000};
    int threads, tries = 0;
    do {
        nanosleep(&moment, NULL);
        DIR *all = opendir("/proc/self/task");
        CHECK(all != NULL && tries++ < 12000);
        for (threads = 0; readdir(all) != NULL;)
            threads++;
        closedir(all);
    } while (threads > 3); // The main thread, and the entries "." and "..".
}

#endif
