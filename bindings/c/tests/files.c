// Transfers between two nodes in one process: by code and by ticket; declined, postponed and cancelled; with callbacks
// that block or call the library. `files FOLDER` works in an empty folder.

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char folder[200];

static const char *in_folder(char *path, size_t room, const char *name)
{
    int len = snprintf(path, room, "%s/%s", folder, name);
    CHECK(len > 0 && (size_t)len < room);
    return path;
}

// Events that callbacks recorded. The lock is for the main thread, which reads them meanwhile.
struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int files, done, failed, released, asked, progress, is_held;
    // The callback stops its own transfer at event number `stop_at`, by a call of wraith_transfer_free if `frees`.
    int events, stop_at, frees, accepted;
    uint32_t stopped_by;
    wraith_status_t status;
    int32_t answer;
    wraith_transfer_t transfer;
};

static void new_seen(struct seen *seen, int32_t answer)
{
    memset(seen, 0, sizeof *seen);
    pthread_mutex_init(&seen->lock, NULL);
    pthread_cond_init(&seen->changed, NULL);
    seen->answer = answer;
}

static void on_event(void *user, const wraith_event_t *event)
{
    struct seen *seen = user;
    pthread_mutex_lock(&seen->lock);
    CHECK(seen->released == 0 && seen->done + seen->failed == 0);
    if (event->kind == WRAITH_EVENT_FILE) {
        CHECK(event->detail == WRAITH_FILE_DONE && event->path.len > 0);
        seen->files++;
    } else if (event->kind == WRAITH_EVENT_CONNECTED) {
        CHECK(event->peer.len == WRAITH_NODE_ID_BYTES);
    } else if (event->kind == WRAITH_EVENT_PROGRESS) {
        seen->progress++;
    } else if (event->kind == WRAITH_EVENT_DONE) {
        seen->done++;
    } else if (event->kind == WRAITH_EVENT_FAILED) {
        seen->failed++;
        seen->status = event->status;
    }
    if (event->kind == WRAITH_EVENT_ACCEPTED)
        seen->accepted = 1;
    if (event->kind == WRAITH_EVENT_STOPPED)
        seen->stopped_by = event->detail;
    while (seen->is_held)
        pthread_cond_wait(&seen->changed, &seen->lock);
    int stops = ++seen->events == seen->stop_at;
    while (stops && seen->transfer == 0)
        pthread_cond_wait(&seen->changed, &seen->lock);
    pthread_mutex_unlock(&seen->lock);
    if (stops && seen->frees)
        OK(wraith_transfer_free(seen->transfer));
    else if (stops)
        OK(wraith_transfer_cancel(seen->transfer));
}

static int32_t on_ask(void *user, const wraith_offer_info_t *offer)
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

static void on_release(void *user)
{
    struct seen *seen = user;
    pthread_mutex_lock(&seen->lock);
    seen->released++;
    pthread_cond_broadcast(&seen->changed);
    pthread_mutex_unlock(&seen->lock);
}

static wraith_callbacks_t callbacks(struct seen *seen)
{
    wraith_callbacks_t all = {sizeof all, seen, on_event, on_ask, on_release};
    return all;
}

static wraith_node_t new_node(void)
{
    wraith_node_t node;
    OK(wraith_node_new(NULL, &node));
    return node;
}

static wraith_transfer_t offer_one(wraith_node_t node, const char *path, uint32_t to, struct seen *seen)
{
    wraith_offer_options_t options = {.struct_size = sizeof options, .to = to, .bind = text("127.0.0.1:0"),
                                      .progress_ms = 10};
    wraith_callbacks_t told = callbacks(seen);
    wraith_bytes_t paths[] = {text(path)};
    wraith_transfer_t transfer;
    OK(wraith_offer(node, paths, 1, &options, &told, &transfer));
    return transfer;
}

static size_t source_of(wraith_transfer_t offer, uint8_t *source, size_t room)
{
    size_t len;
    if (wraith_transfer_ticket(offer, source, room, &len) != WRAITH_OK)
        OK(wraith_transfer_code(offer, source, room, &len));
    return len;
}

static wraith_transfer_t fetch(wraith_node_t node, wraith_transfer_t offer, const char *into, struct seen *seen)
{
    uint8_t source[2000];
    size_t len = source_of(offer, source, sizeof source);
    wraith_fetch_options_t options = {.struct_size = sizeof options, .no_sync = 1, .progress_ms = 10};
    wraith_callbacks_t told = callbacks(seen);
    wraith_transfer_t transfer;
    OK(wraith_fetch(node, source, len, (const uint8_t *)into, strlen(into), &options, &told, &transfer));
    return transfer;
}

static void a_file_arrives(uint32_t to, const char *into)
{
    char path[300], target[300], arrived[400];
    wraith_node_t sender = new_node(), receiver = new_node();
    struct seen sent, received;
    new_seen(&sent, 0);
    new_seen(&received, WRAITH_ACCEPT);
    wraith_transfer_t offer = offer_one(sender, in_folder(path, sizeof path, "film"), to, &sent);
    wraith_transfer_t transfer = fetch(receiver, offer, in_folder(target, sizeof target, into), &received);
    OK(wraith_transfer_wait(transfer, WRAITH_FOREVER));
    OK(wraith_transfer_wait(offer, WRAITH_FOREVER));
    // After wait returns, no callback runs or follows.
    CHECK(received.asked == 1 && received.done == 1 && received.files == 1 && received.released == 1);
    CHECK(sent.asked == 0 && sent.done == 1 && sent.failed == 0 && sent.released == 1);
    wraith_progress_t progress;
    OK(wraith_transfer_progress(transfer, &progress));
    CHECK(progress.bytes == 3000000 && progress.files_total == 1);
    OK(wraith_transfer_progress(offer, &progress));
    CHECK(progress.receivers == 1);
    snprintf(arrived, sizeof arrived, "%s/film", target);
    check_same(path, arrived);
    OK(wraith_transfer_free(transfer));
    OK(wraith_transfer_free(offer));
    GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_free(offer));
    GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_wait(offer, 0));
    OK(wraith_node_free(sender));
    OK(wraith_node_free(receiver));
}

static void who_says_no_gets_nothing(int32_t answer, wraith_status_t of_receiver, wraith_status_t of_sender)
{
    char path[300], target[300];
    wraith_node_t sender = new_node(), receiver = new_node();
    struct seen sent, received;
    new_seen(&sent, 0);
    new_seen(&received, answer);
    wraith_transfer_t offer =
        offer_one(sender, in_folder(path, sizeof path, "film"), WRAITH_OFFER_BY_TICKET, &sent);
    wraith_transfer_t transfer = fetch(receiver, offer, in_folder(target, sizeof target, "nothing"), &received);
    GIVES(of_receiver, wraith_transfer_wait(transfer, WRAITH_FOREVER));
    CHECK(received.failed == 1 && received.status == of_receiver && received.released == 1);
    CHECK(access(target, F_OK) != 0);
    if (of_sender == WRAITH_CANCELLED)
        OK(wraith_transfer_cancel(offer));
    GIVES(of_sender, wraith_transfer_wait(offer, WRAITH_FOREVER));
    OK(wraith_transfer_free(transfer));
    OK(wraith_transfer_free(offer));
    OK(wraith_node_free(sender));
    OK(wraith_node_free(receiver));
}

// A thread waits for an offer without a receiver, until the offer is cancelled.
static void waiting_has_an_end(void)
{
    char path[300];
    wraith_node_t sender = new_node();
    struct seen sent;
    new_seen(&sent, 0);
    wraith_transfer_t offer =
        offer_one(sender, in_folder(path, sizeof path, "film"), WRAITH_OFFER_BY_TICKET, &sent);
    GIVES(WRAITH_TIMED_OUT, wraith_transfer_wait(offer, 0));
    GIVES(WRAITH_TIMED_OUT, wraith_transfer_wait(offer, 20));
    // The node's handle is no longer needed: its transfers keep the node.
    OK(wraith_node_free(sender));
    OK(wraith_transfer_cancel(offer));
    GIVES(WRAITH_CANCELLED, wraith_transfer_wait(offer, WRAITH_FOREVER));
    CHECK(sent.failed == 1 && sent.status == WRAITH_CANCELLED && sent.released == 1);
    OK(wraith_transfer_free(offer));
}

static void *wait_for_it(void *user)
{
    static wraith_status_t status;
    status = wraith_transfer_wait(*(wraith_transfer_t *)user, WRAITH_FOREVER);
    return &status;
}

// A waiting thread returns even if transfer and node are freed meanwhile.
static void freeing_ends_the_waiting(void)
{
    char path[300];
    for (int round = 0; round < 3; round++) {
        wraith_node_t sender = new_node();
        struct seen sent;
        pthread_t waiting;
        void *status;
        new_seen(&sent, 0);
        wraith_transfer_t offer =
            offer_one(sender, in_folder(path, sizeof path, "film"), WRAITH_OFFER_BY_TICKET, &sent);
        CHECK(pthread_create(&waiting, NULL, wait_for_it, &offer) == 0);
        // The thread may or may not wait already; both cases are valid.
        if (round > 0)
            GIVES(WRAITH_TIMED_OUT, wraith_transfer_wait(offer, 20));
        OK(wraith_transfer_free(offer));
        OK(wraith_node_free(sender));
        CHECK(pthread_join(waiting, &status) == 0);
        wraith_status_t ended = *(wraith_status_t *)status;
        CHECK(ended == WRAITH_CANCELLED || ended == WRAITH_INVALID_HANDLE);
        pthread_mutex_lock(&sent.lock);
        while (!sent.released)
            pthread_cond_wait(&sent.changed, &sent.lock);
        pthread_mutex_unlock(&sent.lock);
    }
}

// The sender's callback blocks from its first event on, and all files still arrive.
static void a_blocked_callback_stops_nothing(void)
{
    char path[300], target[300], arrived[400];
    wraith_node_t sender = new_node(), receiver = new_node();
    struct seen sent, received;
    new_seen(&sent, 0);
    new_seen(&received, WRAITH_ACCEPT);
    sent.is_held = 1;
    wraith_transfer_t offer =
        offer_one(sender, in_folder(path, sizeof path, "film"), WRAITH_OFFER_BY_TICKET, &sent);
    wraith_transfer_t transfer = fetch(receiver, offer, in_folder(target, sizeof target, "blocked"), &received);
    OK(wraith_transfer_wait(transfer, WRAITH_FOREVER));
    snprintf(arrived, sizeof arrived, "%s/film", target);
    check_same(path, arrived);
    // The callback still blocks, so the transfer is not over.
    GIVES(WRAITH_TIMED_OUT, wraith_transfer_wait(offer, 20));
    // Freeing does not wait for the callback, and release is called after it.
    OK(wraith_transfer_free(offer));
    pthread_mutex_lock(&sent.lock);
    CHECK(sent.released == 0);
    sent.is_held = 0;
    pthread_cond_broadcast(&sent.changed);
    while (!sent.released)
        pthread_cond_wait(&sent.changed, &sent.lock);
    CHECK(sent.done == 0);
    pthread_mutex_unlock(&sent.lock);
    OK(wraith_transfer_free(transfer));
    OK(wraith_node_free(sender));
    OK(wraith_node_free(receiver));
}

static void set_transfer(struct seen *seen, wraith_transfer_t transfer)
{
    pthread_mutex_lock(&seen->lock);
    seen->transfer = transfer;
    pthread_cond_broadcast(&seen->changed);
    pthread_mutex_unlock(&seen->lock);
}

// Each side stops at each of its first events, also before the connection. If both have seen the acceptance, both end,
// and the other one is told which side it was. Before, the two may not know of each other, and a receiver that is freed
// postpones its answer.
static void a_stop_ends_both_sides(int stop_at, uint32_t side, int frees)
{
    char path[300], target[300], name[50];
    wraith_node_t sender = new_node(), receiver = new_node();
    struct seen seen[2];
    new_seen(&seen[0], 0);
    new_seen(&seen[1], WRAITH_ACCEPT);
    int own = side == WRAITH_RECEIVER;
    seen[own].stop_at = stop_at;
    seen[own].frees = frees;
    wraith_offer_options_t options = {.struct_size = sizeof options, .to = WRAITH_OFFER_BY_TICKET, .progress_ms = 10,
                                      .bind = text("127.0.0.1:0"), .bytes_per_second = 1000000};
    wraith_callbacks_t told = callbacks(&seen[0]);
    wraith_bytes_t paths[] = {text(in_folder(path, sizeof path, "film"))};
    wraith_transfer_t offer, transfer;
    OK(wraith_offer(sender, paths, 1, &options, &told, &offer));
    set_transfer(&seen[0], offer);
    snprintf(name, sizeof name, "stopped-%d-%u-%d", stop_at, (unsigned)side, frees);
    transfer = fetch(receiver, offer, in_folder(target, sizeof target, name), &seen[1]);
    set_transfer(&seen[1], transfer);
    pthread_mutex_lock(&seen[own].lock);
    while (!seen[own].released)
        pthread_cond_wait(&seen[own].changed, &seen[own].lock);
    pthread_mutex_unlock(&seen[own].lock);
    wraith_transfer_t other = own ? offer : transfer;
    pthread_mutex_lock(&seen[!own].lock);
    int is_under_way = seen[own].accepted && seen[!own].accepted;
    pthread_mutex_unlock(&seen[!own].lock);
    wraith_status_t ended = wraith_transfer_wait(other, is_under_way ? 10000 : 500);
    if (ended == WRAITH_TIMED_OUT) {
        CHECK(!is_under_way);
        OK(wraith_transfer_cancel(other));
        ended = wraith_transfer_wait(other, 10000);
    }
    // On a slow machine, the transfer may be complete before so many events came.
    int is_complete = seen[own].done;
    if (!is_complete && is_under_way)
        CHECK(ended == WRAITH_CANCELLED && seen[!own].stopped_by == side && seen[!own].failed == 1);
    CHECK(seen[!own].released == 1);
    int is_freed = frees && seen[own].events >= stop_at;
    if (!is_freed)
        OK(wraith_transfer_free(own ? transfer : offer));
    OK(wraith_transfer_free(other));
    OK(wraith_node_free(sender));
    OK(wraith_node_free(receiver));
}

static int32_t wait_and_free_in_callback(void *user, const wraith_offer_info_t *offer)
{
    struct seen *seen = user;
    (void)offer;
    pthread_mutex_lock(&seen->lock);
    while (seen->transfer == 0)
        pthread_cond_wait(&seen->changed, &seen->lock);
    pthread_mutex_unlock(&seen->lock);
    GIVES(WRAITH_INVALID_STATE, wraith_transfer_wait(seen->transfer, WRAITH_FOREVER));
    OK(wraith_transfer_free(seen->transfer));
    return WRAITH_ACCEPT;
}

// A callback frees its own transfer: the offer is then not accepted, and release is the last call.
static void a_callback_can_free_its_transfer(void)
{
    char path[300], target[300];
    wraith_node_t sender = new_node(), receiver = new_node();
    struct seen sent, received;
    new_seen(&sent, 0);
    new_seen(&received, 0);
    wraith_transfer_t offer =
        offer_one(sender, in_folder(path, sizeof path, "film"), WRAITH_OFFER_BY_TICKET, &sent);
    uint8_t source[2000];
    size_t len = source_of(offer, source, sizeof source);
    wraith_callbacks_t told = {sizeof told, &received, NULL, wait_and_free_in_callback, on_release};
    wraith_transfer_t transfer;
    in_folder(target, sizeof target, "freed");
    OK(wraith_fetch(receiver, source, len, (const uint8_t *)target, strlen(target), NULL, &told, &transfer));
    pthread_mutex_lock(&received.lock);
    received.transfer = transfer;
    pthread_cond_broadcast(&received.changed);
    while (!received.released)
        pthread_cond_wait(&received.changed, &received.lock);
    pthread_mutex_unlock(&received.lock);
    GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_free(transfer));
    CHECK(access(target, F_OK) != 0);
    OK(wraith_node_free(receiver));
    OK(wraith_transfer_free(offer));
    OK(wraith_node_free(sender));
}

static void what_makes_no_sense_is_refused(void)
{
    char path[300];
    wraith_node_t node = new_node();
    wraith_transfer_t transfer = 77;
    wraith_bytes_t nothing = {NULL, 0}, null = {NULL, 5}, missing = text("/no/such/file");
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, NULL, 0, NULL, NULL, &transfer));
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, NULL, 3, NULL, NULL, &transfer));
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, &nothing, 1, NULL, NULL, &transfer));
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, &null, 1, NULL, NULL, &transfer));
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, &missing, 1, NULL, NULL, &transfer));
    wraith_bytes_t film = text(in_folder(path, sizeof path, "film"));
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, &film, 1, NULL, NULL, NULL));
    wraith_offer_options_t options = {.struct_size = 3};
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, &film, 1, &options, NULL, &transfer));
    options.struct_size = sizeof options;
    options.to = 9;
    GIVES(WRAITH_INVALID_INPUT, wraith_offer(node, &film, 1, &options, NULL, &transfer));
    options.to = WRAITH_OFFER_TO_CONTACT;
    options.contact = text("anna");
    GIVES(WRAITH_NOT_FOUND, wraith_offer(node, &film, 1, &options, NULL, &transfer));
    const uint8_t *code = (const uint8_t *)"hello", *here = (const uint8_t *)".";
    wraith_fetch_options_t all = {.struct_size = sizeof all, .accept_all = 1};
    GIVES(WRAITH_INVALID_INPUT, wraith_fetch(node, code, 5, here, 1, &all, NULL, &transfer));
    GIVES(WRAITH_INVALID_INPUT, wraith_fetch(node, NULL, 0, here, 1, &all, NULL, &transfer));
    code = (const uint8_t *)"7-crater-lemon";
    GIVES(WRAITH_INVALID_INPUT, wraith_fetch(node, code, 14, here, 1, NULL, NULL, &transfer));
    GIVES(WRAITH_INVALID_HANDLE, wraith_fetch(node + 1, code, 14, here, 1, &all, NULL, &transfer));
    GIVES(WRAITH_INVALID_HANDLE, wraith_offer(0, &film, 1, NULL, NULL, &transfer));
    CHECK(transfer == 77);
    OK(wraith_node_free(node));
    GIVES(WRAITH_INVALID_HANDLE, wraith_node_free(node));
}

int main(int count, char **words)
{
    CHECK(count == 2);
    snprintf(folder, sizeof folder, "%s", words[1]);
    char path[300];
    write_file(in_folder(path, sizeof path, "film"), 3000000, 1);
    what_makes_no_sense_is_refused();
    // Before the other tests, so that all threads of freed transfers have ended at the end.
    const char *wanted = getenv("WRAITH_TEST_STOPS");
    int stops = wanted == NULL ? 20 : atoi(wanted);
    for (int stop_at = 1; stop_at <= stops; stop_at++)
        for (int frees = 0; frees < 2; frees++) {
            a_stop_ends_both_sides(stop_at, WRAITH_SENDER, frees);
            a_stop_ends_both_sides(stop_at, WRAITH_RECEIVER, frees);
        }
    a_file_arrives(WRAITH_OFFER_BY_TICKET, "by-ticket");
    a_file_arrives(WRAITH_OFFER_BY_CODE, "by-code");
    who_says_no_gets_nothing(WRAITH_REFUSE, WRAITH_REFUSED, WRAITH_REFUSED);
    who_says_no_gets_nothing(WRAITH_POSTPONE, WRAITH_POSTPONED, WRAITH_CANCELLED);
    waiting_has_an_end();
    freeing_ends_the_waiting();
    a_blocked_callback_stops_nothing();
    a_callback_can_free_its_transfer();
    puts("files: all as it should be");
    return 0;
}
