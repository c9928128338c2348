// One side stops: by cancel, by free, or by the shutdown of its node. It does so from the main thread or in a callback,
// at 20 moments of a transfer and at each of the first events. Both sides end, with the side that stopped as the reason.
// Also programs that end during a transfer, and callbacks that call the library. `stopping FOLDER` works in an empty
// folder.
// WRAITH_TEST_STOPS is a smaller number of events and moments, for valgrind; then no program exits.

#include <signal.h>
#include <sys/wait.h>

#include "transfers.h"

#define FILM_BYTES 3000000
// The transfer takes 750 ms.
#define RATE 4000000
// Turns a hang into a failure.
#define PATIENCE_MS 60000
#define MOMENTS 20

static wraith_node_t local_node(void)
{
    wraith_node_options_t options = {.struct_size = sizeof options, .lan_off = 1};
    wraith_node_t node;
    OK(wraith_node_new(&options, &node));
    return node;
}

// A transfer between two nodes; 0 is the sender and 1 the receiver.
struct pair {
    wraith_node_t node[2];
    wraith_transfer_t transfer[2];
    struct seen seen[2];
};

static wraith_transfer_t limited_offer(wraith_node_t node, struct seen *seen)
{
    char path[300];
    wraith_offer_options_t options = {.struct_size = sizeof options, .to = WRAITH_OFFER_BY_TICKET, .progress_ms = 5,
                                      .bind = text("127.0.0.1:0"), .bytes_per_second = RATE};
    wraith_callbacks_t told = callbacks(seen);
    wraith_bytes_t paths[] = {text(in_folder(path, sizeof path, "film"))};
    wraith_transfer_t offer;
    OK(wraith_offer(node, paths, 1, &options, &told, &offer));
    return offer;
}

static void new_pair(struct pair *pair)
{
    memset(pair, 0, sizeof *pair);
    for (int side = 0; side < 2; side++) {
        pair->node[side] = local_node();
        new_seen(&pair->seen[side], WRAITH_ACCEPT);
        pair->seen[side].node = pair->node[side];
    }
}

static void start(struct pair *pair, const char *name)
{
    char target[300];
    uint8_t source[2000];
    pair->transfer[0] = limited_offer(pair->node[0], &pair->seen[0]);
    // From here on, the sender may free its handle at its first event.
    size_t len = source_of(pair->transfer[0], source, sizeof source);
    set_transfer(&pair->seen[0], pair->transfer[0]);
    in_folder(target, sizeof target, name);
    pair->transfer[1] = fetch_from(pair->node[1], source, len, target, &pair->seen[1]);
    set_transfer(&pair->seen[1], pair->transfer[1]);
}

static void free_nodes(struct pair *pair)
{
    OK(wraith_node_free(pair->node[0]));
    OK(wraith_node_free(pair->node[1]));
}

// Each side stops at each of its first events, also before the connection. If both have seen the acceptance, both end,
// and the other one is told which side it was. Before, the two may not know of each other, and a receiver that is freed
// postpones its answer.
static void a_stop_at_an_event(int stop_at, uint32_t side, enum way way)
{
    char name[50];
    struct pair pair;
    new_pair(&pair);
    int own = side == WRAITH_RECEIVER, other = !own;
    struct seen *seen = &pair.seen[other];
    pair.seen[own].stop_at = stop_at;
    pair.seen[own].way = way;
    snprintf(name, sizeof name, "event-%d-%u-%d", stop_at, (unsigned)side, way);
    start(&pair, name);
    AWAIT(&pair.seen[own], released);
    pthread_mutex_lock(&seen->lock);
    int is_under_way = pair.seen[own].accepted && seen->accepted;
    pthread_mutex_unlock(&seen->lock);
    wraith_status_t ended = wraith_transfer_wait(pair.transfer[other], is_under_way ? PATIENCE_MS : 500);
    if (ended == WRAITH_TIMED_OUT) {
        CHECK(!is_under_way);
        OK(wraith_transfer_cancel(pair.transfer[other]));
        ended = wraith_transfer_wait(pair.transfer[other], PATIENCE_MS);
    }
    // On a slow machine, the transfer may be complete before so many events came.
    if (!pair.seen[own].done && is_under_way)
        CHECK(ended == WRAITH_CANCELLED && seen->stopped_by == side && seen->failed == 1);
    CHECK(seen->released == 1);
    if (way != FREE || !pair.seen[own].has_stopped)
        OK(wraith_transfer_free(pair.transfer[own]));
    OK(wraith_transfer_free(pair.transfer[other]));
    free_nodes(&pair);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static pthread_mutex_t figures_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t longest_ms;
static int stops, too_late;

static void count_stop(uint64_t took_ms, int is_too_late)
{
    pthread_mutex_lock(&figures_lock);
    stops++;
    too_late += is_too_late;
    if (!is_too_late && took_ms > longest_ms)
        longest_ms = took_ms;
    pthread_mutex_unlock(&figures_lock);
}

// Waits until both sides have accepted, and `bytes` bytes are settled on this side.
static void await_moment(struct pair *pair, int side, uint64_t bytes)
{
    AWAIT(&pair->seen[0], accepted);
    AWAIT(&pair->seen[1], accepted);
    struct seen *seen = &pair->seen[side];
    pthread_mutex_lock(&seen->lock);
    while (seen->bytes < bytes && !seen->released)
        pthread_cond_wait(&seen->changed, &seen->lock);
    pthread_mutex_unlock(&seen->lock);
}

static void a_stop_at_a_moment(int moment, int own, enum way way, int is_in_callback)
{
    char name[50];
    struct pair pair;
    new_pair(&pair);
    int other = !own;
    struct seen *seen = pair.seen;
    uint64_t bytes = (uint64_t)moment * FILM_BYTES / MOMENTS;
    if (is_in_callback) {
        seen[own].way = way;
        seen[own].stop_bytes = bytes;
        seen[own].peer = &seen[other];
    }
    snprintf(name, sizeof name, "moment-%d-%d-%d-%d", moment, own, way, is_in_callback);
    start(&pair, name);
    await_moment(&pair, own, bytes);
    uint64_t start_ms = now_ms();
    if (!is_in_callback)
        stop(way, pair.transfer[own], pair.node[own]);
    wraith_status_t ended = wraith_transfer_wait(pair.transfer[other], PATIENCE_MS);
    AWAIT(&seen[own], released);
    int is_freed = way == FREE && (!is_in_callback || seen[own].has_stopped);
    wraith_status_t own_ended = is_freed ? ended : wraith_transfer_wait(pair.transfer[own], PATIENCE_MS);
    // On a slow machine, the transfer may be complete before.
    int is_complete = ended == WRAITH_OK || seen[own].done;
    count_stop(now_ms() - start_ms, is_complete);
    if (!is_complete) {
        CHECK(ended == WRAITH_CANCELLED && own_ended == WRAITH_CANCELLED);
        CHECK(seen[other].stopped_by == (own ? WRAITH_RECEIVER : WRAITH_SENDER) && seen[other].failed == 1);
        CHECK(seen[own].failed == !is_freed && seen[own].released == 1 && seen[other].released == 1);
    }
    if (is_freed)
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_free(pair.transfer[own]));
    else
        OK(wraith_transfer_free(pair.transfer[own]));
    OK(wraith_transfer_free(pair.transfer[other]));
    free_nodes(&pair);
}

// The events and moments, and the threads that divide them.
static int moments = MOMENTS, threads = MOMENTS;

static void *stop_at_moments(void *user)
{
    for (int at = *(int *)user; at < moments; at += threads)
        for (enum way way = CANCEL; way <= SHUT_DOWN; way++)
            for (int own = 0; own < 2; own++) {
                a_stop_at_an_event(at + 1, own ? WRAITH_RECEIVER : WRAITH_SENDER, way);
                a_stop_at_a_moment(at * MOMENTS / moments, own, way, 0);
                a_stop_at_a_moment(at * MOMENTS / moments, own, way, 1);
            }
    return NULL;
}

static void a_stop_ends_both_sides_at_every_moment(void)
{
    pthread_t running[MOMENTS];
    int first[MOMENTS];
    for (int at = 0; at < threads; at++) {
        first[at] = at;
        CHECK(pthread_create(&running[at], NULL, stop_at_moments, &first[at]) == 0);
    }
    for (int at = 0; at < threads; at++)
        CHECK(pthread_join(running[at], NULL) == 0);
    printf("%d stops ended both sides within %d ms; %d were too late\n", stops, (int)longest_ms, too_late);
    // valgrind runs one thread at a time, and may come late.
    CHECK(too_late < stops / 2 || moments < MOMENTS);
}

static int32_t wait_and_free_in_callback(void *user, const wraith_offer_info_t *offer)
{
    struct seen *seen = user;
    (void)offer;
    AWAIT(seen, transfer);
    GIVES(WRAITH_INVALID_STATE, wraith_transfer_wait(seen->transfer, WRAITH_FOREVER));
    OK(wraith_transfer_free(seen->transfer));
    return WRAITH_ACCEPT;
}

// A callback frees its own transfer: the offer is then not accepted, and release is the last call.
static void a_callback_can_free_its_transfer(void)
{
    char target[300];
    struct pair pair;
    new_pair(&pair);
    pair.transfer[0] = limited_offer(pair.node[0], &pair.seen[0]);
    uint8_t source[2000];
    size_t len = source_of(pair.transfer[0], source, sizeof source);
    wraith_callbacks_t told = {sizeof told, &pair.seen[1], NULL, wait_and_free_in_callback, on_release};
    in_folder(target, sizeof target, "freed");
    const uint8_t *into = (const uint8_t *)target;
    OK(wraith_fetch(pair.node[1], source, len, into, strlen(target), NULL, &told, &pair.transfer[1]));
    set_transfer(&pair.seen[1], pair.transfer[1]);
    AWAIT(&pair.seen[1], released);
    GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_free(pair.transfer[1]));
    CHECK(access(target, F_OK) != 0);
    OK(wraith_transfer_free(pair.transfer[0]));
    AWAIT(&pair.seen[0], released);
    free_nodes(&pair);
}

// Calls the library in every way, for the transfer of the callback and for others.
static void call_back(void *user, const wraith_event_t *event)
{
    struct seen *seen = user;
    AWAIT(seen, transfer);
    wraith_progress_t progress;
    uint8_t out[2000];
    size_t len;
    OK(wraith_transfer_progress(seen->transfer, &progress));
    OK(wraith_transfer_continues_for(seen->transfer, out, sizeof out, &len));
    OK(wraith_node_id(seen->node, out, sizeof out, &len));
    // The transfer may be over before all its events are delivered.
    wraith_status_t waited = wraith_transfer_wait(seen->transfer, 0);
    CHECK(waited == WRAITH_INVALID_STATE || waited == WRAITH_OK);
    CHECK(waited == WRAITH_OK || event->kind != WRAITH_EVENT_DONE);
    // A whole offer of the same node and of another one, both freed before the callback returns.
    struct seen unused[2];
    wraith_node_t node = local_node();
    for (int at = 0; at < 2; at++) {
        new_seen(&unused[at], 0);
        OK(wraith_transfer_free(limited_offer(at ? node : seen->node, &unused[at])));
    }
    OK(wraith_node_free(node));
    AWAIT(&unused[0], released);
    AWAIT(&unused[1], released);
    pthread_mutex_lock(&seen->lock);
    record(seen, event);
    pthread_mutex_unlock(&seen->lock);
}

// The last call frees the transfer and its node.
static void free_all(void *user)
{
    struct seen *seen = user;
    OK(wraith_transfer_free(seen->transfer));
    OK(wraith_node_free(seen->node));
    on_release(user);
}

static void callbacks_can_call_back(void)
{
    char path[300], target[300];
    struct pair pair;
    new_pair(&pair);
    uint8_t source[2000];
    wraith_bytes_t paths[] = {text(in_folder(path, sizeof path, "film"))};
    wraith_offer_options_t offer = {.struct_size = sizeof offer, .to = WRAITH_OFFER_BY_TICKET,
                                    .bind = text("127.0.0.1:0")};
    wraith_callbacks_t told = {sizeof told, &pair.seen[0], call_back, NULL, free_all};
    OK(wraith_offer(pair.node[0], paths, 1, &offer, &told, &pair.transfer[0]));
    size_t len = source_of(pair.transfer[0], source, sizeof source);
    set_transfer(&pair.seen[0], pair.transfer[0]);
    in_folder(target, sizeof target, "called-back");
    told.user = &pair.seen[1];
    told.ask = on_ask;
    const uint8_t *into = (const uint8_t *)target;
    OK(wraith_fetch(pair.node[1], source, len, into, strlen(target), NULL, &told, &pair.transfer[1]));
    set_transfer(&pair.seen[1], pair.transfer[1]);
    for (int side = 0; side < 2; side++) {
        AWAIT(&pair.seen[side], released);
        CHECK(pair.seen[side].done == 1 && pair.seen[side].released == 1);
        GIVES(WRAITH_INVALID_HANDLE, wraith_transfer_free(pair.transfer[side]));
        GIVES(WRAITH_INVALID_HANDLE, wraith_node_free(pair.node[side]));
    }
}

static void *wait_for_ok(void *user)
{
    OK(wraith_transfer_wait(*(wraith_transfer_t *)user, WRAITH_FOREVER));
    return NULL;
}

// The sender's callback blocks until the receiver's transfer is over, and two threads wait for each end.
static void both_ends_can_be_joined(void)
{
    struct pair pair;
    pthread_t waiting[4];
    new_pair(&pair);
    pair.seen[0].is_held = 1;
    start(&pair, "joined");
    for (int at = 0; at < 4; at++)
        CHECK(pthread_create(&waiting[at], NULL, wait_for_ok, &pair.transfer[at % 2]) == 0);
    OK(wraith_transfer_wait(pair.transfer[1], WRAITH_FOREVER));
    pthread_mutex_lock(&pair.seen[0].lock);
    pair.seen[0].is_held = 0;
    pthread_cond_broadcast(&pair.seen[0].changed);
    pthread_mutex_unlock(&pair.seen[0].lock);
    for (int at = 0; at < 4; at++)
        CHECK(pthread_join(waiting[at], NULL) == 0);
    for (int side = 0; side < 2; side++)
        OK(wraith_transfer_free(pair.transfer[side]));
    free_nodes(&pair);
}

// Shutdown also ends an offer without a receiver, and a fetch whose user has not answered. Nothing starts after it.
static void a_node_that_is_shut_down_starts_nothing(void)
{
    char path[300], target[300];
    struct pair pair;
    new_pair(&pair);
    struct seen idle, later;
    new_seen(&idle, 0);
    new_seen(&later, WRAITH_ACCEPT);
    start(&pair, "shut-down");
    wraith_transfer_t offer = limited_offer(pair.node[0], &idle), transfer;
    AWAIT(&pair.seen[0], accepted);
    AWAIT(&pair.seen[1], accepted);
    OK(wraith_node_shutdown(pair.node[0]));
    OK(wraith_node_shutdown(pair.node[0]));
    GIVES(WRAITH_CANCELLED, wraith_transfer_wait(offer, PATIENCE_MS));
    GIVES(WRAITH_CANCELLED, wraith_transfer_wait(pair.transfer[0], PATIENCE_MS));
    GIVES(WRAITH_CANCELLED, wraith_transfer_wait(pair.transfer[1], PATIENCE_MS));
    wraith_bytes_t film = text(in_folder(path, sizeof path, "film"));
    GIVES(WRAITH_CANCELLED, wraith_offer(pair.node[0], &film, 1, NULL, NULL, &transfer));
    transfer = fetch(pair.node[0], offer, in_folder(target, sizeof target, "nothing"), &later);
    GIVES(WRAITH_CANCELLED, wraith_transfer_wait(transfer, PATIENCE_MS));
    CHECK(later.failed == 1 && later.released == 1 && access(target, F_OK) != 0);
    OK(wraith_transfer_free(transfer));
    OK(wraith_transfer_free(offer));
    for (int side = 0; side < 2; side++)
        OK(wraith_transfer_free(pair.transfer[side]));
    free_nodes(&pair);
    GIVES(WRAITH_INVALID_HANDLE, wraith_node_shutdown(pair.node[0]));
}

// Ends the program at the first event after the acceptance.
static void exit_in_callback(void *user, const wraith_event_t *event)
{
    struct seen *seen = user;
    on_event(user, event);
    if (seen->accepted && event->kind == WRAITH_EVENT_PROGRESS)
        exit(0);
}

static wraith_transfer_t begin(int is_receiver, int ticket[2], struct seen *seen, const wraith_callbacks_t *told)
{
    char path[300], target[300];
    uint8_t ticket_text[2000];
    size_t len = 0;
    ssize_t got;
    wraith_transfer_t transfer;
    if (!is_receiver) {
        wraith_offer_options_t options = {.struct_size = sizeof options, .to = WRAITH_OFFER_BY_TICKET, .progress_ms = 5,
                                          .bind = text("127.0.0.1:0"), .bytes_per_second = RATE / 20};
        wraith_bytes_t paths[] = {text(in_folder(path, sizeof path, "film"))};
        OK(wraith_offer(seen->node, paths, 1, &options, told, &transfer));
        OK(wraith_transfer_ticket(transfer, ticket_text, sizeof ticket_text, &len));
        CHECK(write(ticket[1], ticket_text, len) == (ssize_t)len);
        CHECK(close(ticket[0]) == 0 && close(ticket[1]) == 0);
        return transfer;
    }
    CHECK(close(ticket[1]) == 0);
    while ((got = read(ticket[0], ticket_text + len, sizeof ticket_text - len)) > 0)
        len += (size_t)got;
    CHECK(close(ticket[0]) == 0);
    in_folder(target, sizeof target, "exits");
    snprintf(target + strlen(target), sizeof target - strlen(target), "-%d", (int)getpid());
    wraith_fetch_options_t options = {.struct_size = sizeof options, .progress_ms = 5};
    OK(wraith_fetch(seen->node, ticket_text, len, (const uint8_t *)target, strlen(target), &options, told, &transfer));
    return transfer;
}

// One program exits in the middle of a transfer. It ends at once, and the other one loses the connection.
static void a_program_that_exits(int is_receiver, int is_in_callback)
{
    int ticket[2], status;
    struct seen seen;
    CHECK(pipe(ticket) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    alarm(PATIENCE_MS / 1000);
    new_seen(&seen, WRAITH_ACCEPT);
    seen.node = local_node();
    wraith_callbacks_t told = callbacks(&seen);
    if (child == 0) {
        if (is_in_callback)
            told.event = exit_in_callback;
        begin(is_receiver, ticket, &seen, &told);
        AWAIT(&seen, bytes);
        if (!is_in_callback)
            exit(0);
        AWAIT(&seen, released);
        exit(1);
    }
    wraith_transfer_t transfer = begin(!is_receiver, ticket, &seen, &told);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pthread_mutex_lock(&seen.lock);
    while (!seen.lost && !seen.stopped_by && !seen.released)
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
    CHECK(seen.done == 0);
    OK(wraith_transfer_free(transfer));
    OK(wraith_node_free(seen.node));
}

int main(int count, char **words)
{
    CHECK(count == 2);
    snprintf(folder, sizeof folder, "%s", words[1]);
    char path[300];
    write_file(in_folder(path, sizeof path, "film"), FILM_BYTES, 1);
    const char *wanted = getenv("WRAITH_TEST_STOPS");
    pid_t exits[4];
    // Fork before the library starts threads. valgrind reports the threads of an exiting program as leaks.
    for (int at = 0; at < 4 && !wanted; at++) {
        exits[at] = fork();
        CHECK(exits[at] >= 0);
        if (exits[at] == 0) {
            a_program_that_exits(at % 2, at / 2);
            return 0;
        }
    }
    if (wanted) {
        moments = atoi(wanted);
        CHECK(moments > 0 && moments <= MOMENTS);
        threads = 1;
    }
    a_stop_ends_both_sides_at_every_moment();
    a_callback_can_free_its_transfer();
    callbacks_can_call_back();
    both_ends_can_be_joined();
    a_node_that_is_shut_down_starts_nothing();
    for (int at = 0; at < 4 && !wanted; at++) {
        int status;
        CHECK(waitpid(exits[at], &status, 0) == exits[at] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    await_end_of_threads();
    puts("stopping: all as it should be");
    return 0;
}
