// Raw connections between two nodes in one process: services by ticket, by code and for contacts; streams, datagrams and
// ends; calls that wait while their handle is freed; every order of freeing.

#include "transfers.h"

// More than all queues and windows between a writer and a peer that does not read.
enum { LOTS = 32 << 20 };
enum { SOON_MS = 60000, CODE = 0x123 };
static const uint64_t OTHER_CODE = 0x1234567890;

static wraith_service_t serve(wraith_node_t node, uint32_t callers)
{
    wraith_serve_options_t options = {.struct_size = sizeof options, .callers = callers, .name = text("echo")};
    if (callers == WRAITH_CALLERS_BY_TICKET)
        options.bind = text("127.0.0.1:0");
    wraith_service_t service;
    OK(wraith_serve(node, &options, &service));
    return service;
}

static wraith_connection_t connect_to(wraith_node_t node, wraith_service_t service, uint64_t timeout_ms)
{
    uint8_t source[2000];
    size_t len;
    if (wraith_service_ticket(service, source, sizeof source, &len) != WRAITH_OK)
        OK(wraith_service_code(service, source, sizeof source, &len));
    wraith_connection_t connection;
    OK(wraith_connect(node, source, len, timeout_ms, &connection));
    return connection;
}

// Both ends of a connection and of a stream, on which the opening side has written one byte.
struct pair {
    wraith_node_t node[2];
    wraith_service_t service;
    wraith_connection_t connection[2];
    wraith_stream_t stream[2];
};

static void open_pair(struct pair *pair)
{
    for (int side = 0; side < 2; side++)
        pair->node[side] = new_node();
    pair->service = serve(pair->node[0], WRAITH_CALLERS_BY_TICKET);
    pair->connection[1] = connect_to(pair->node[1], pair->service, 0);
    OK(wraith_service_accept(pair->service, WRAITH_FOREVER, &pair->connection[0]));
    OK(wraith_connection_wait(pair->connection[1], WRAITH_FOREVER));
    OK(wraith_connection_open_stream(pair->connection[1], WRAITH_FOREVER, &pair->stream[1]));
    OK(wraith_stream_write(pair->stream[1], (const uint8_t *)"x", 1, WRAITH_FOREVER, NULL));
    OK(wraith_connection_accept_stream(pair->connection[0], WRAITH_FOREVER, &pair->stream[0]));
}

static void free_pair(struct pair *pair)
{
    for (int side = 0; side < 2; side++) {
        OK(wraith_stream_free(pair->stream[side]));
        OK(wraith_connection_free(pair->connection[side]));
    }
    OK(wraith_service_free(pair->service));
    for (int side = 0; side < 2; side++)
        OK(wraith_node_free(pair->node[side]));
}

// Sends some bytes and checks that they come back.
static void echo(wraith_connection_t caller, wraith_connection_t served)
{
    wraith_stream_t asking, answering;
    uint8_t got[100];
    size_t len, written;
    OK(wraith_connection_open_stream(caller, WRAITH_FOREVER, &asking));
    OK(wraith_stream_write(asking, (const uint8_t *)"are you there?", 14, WRAITH_FOREVER, &written));
    CHECK(written == 14);
    OK(wraith_stream_finish(asking));
    OK(wraith_connection_accept_stream(served, WRAITH_FOREVER, &answering));
    OK(wraith_stream_read_to_end(answering, WRAITH_FOREVER, got, sizeof got, &len));
    OK(wraith_stream_write(answering, got, len, WRAITH_FOREVER, NULL));
    OK(wraith_stream_finish(answering));
    OK(wraith_stream_read(asking, WRAITH_FOREVER, got, 3, &len));
    CHECK(len == 3 && memcmp(got, "are", 3) == 0);
    OK(wraith_stream_read_to_end(asking, WRAITH_FOREVER, got, sizeof got, &len));
    CHECK(len == 11 && memcmp(got, " you there?", 11) == 0);
    // The end of the stream, as often as it is asked for.
    for (int at = 0; at < 2; at++) {
        OK(wraith_stream_read(asking, WRAITH_FOREVER, got, sizeof got, &len));
        CHECK(len == 0);
    }
    OK(wraith_stream_acked(answering, WRAITH_FOREVER));
    GIVES(WRAITH_INVALID_STATE, wraith_stream_write(asking, got, 1, WRAITH_FOREVER, &written));
    CHECK(written == 0);
    OK(wraith_stream_free(asking));
    OK(wraith_stream_free(answering));
}

static void check_peer(wraith_connection_t connection, wraith_node_t node)
{
    uint8_t peer[WRAITH_NODE_ID_BYTES], id[WRAITH_NODE_ID_BYTES];
    size_t len;
    OK(wraith_connection_peer(connection, peer, sizeof peer, &len));
    OK(wraith_node_id(node, id, sizeof id, &len));
    CHECK(len == sizeof id && memcmp(peer, id, sizeof id) == 0);
}

static void check_closed(wraith_connection_t connection, uint32_t cause, uint64_t code, const char *reason)
{
    uint32_t got_cause;
    uint64_t got_code;
    uint8_t words[600];
    size_t len;
    OK(wraith_connection_closed(connection, SOON_MS, &got_cause, &got_code, words, sizeof words, &len));
    CHECK(got_cause == cause && got_code == code && len == strlen(reason) && memcmp(words, reason, len) == 0);
    if (len > 0)
        GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_connection_closed(connection, 0, NULL, NULL, words, len - 1, &len));
    OK(wraith_connection_closed(connection, 0, NULL, NULL, words, sizeof words, &len));
}

static void know(wraith_node_t node, const char *name, wraith_node_t other, wraith_bytes_t address)
{
    uint8_t id[WRAITH_NODE_ID_BYTES];
    size_t len;
    OK(wraith_node_id(other, id, sizeof id, &len));
    OK(wraith_node_add_contact(node, (const uint8_t *)name, strlen(name), id, len, address.data, address.len));
}

static void a_caller_gets_an_answer(uint32_t callers)
{
    wraith_node_t serving = new_node(), calling = new_node();
    if (callers == WRAITH_CALLERS_CONTACTS)
        know(serving, "anna", calling, text(""));
    wraith_service_t service = serve(serving, callers);
    wraith_connection_t caller, served;
    uint8_t words[200] = {0};
    size_t len;
    OK(wraith_service_address(service, words, sizeof words, &len));
    if (callers == WRAITH_CALLERS_CONTACTS) {
        // It listens on all addresses.
        while (len > 0 && words[len - 1] != ':')
            len--;
        char address[32];
        snprintf(address, sizeof address, "127.0.0.1:%s", (const char *)words + len);
        know(calling, "bob", serving, text(address));
        const uint8_t *bob = (const uint8_t *)"bob", *name = (const uint8_t *)"echo";
        OK(wraith_connect_to_contact(calling, bob, 3, name, 4, 0, &caller));
        GIVES(WRAITH_NOT_FOUND, wraith_connect_to_contact(calling, bob, 2, name, 4, 0, &served));
        GIVES(WRAITH_NOT_FOUND, wraith_service_ticket(service, words, sizeof words, &len));
    } else {
        caller = connect_to(calling, service, 0);
    }
    OK(wraith_service_places(service, words, sizeof words, &len));
    CHECK((len > 0) == (callers != WRAITH_CALLERS_BY_TICKET));
    OK(wraith_service_accept(service, WRAITH_FOREVER, &served));
    OK(wraith_connection_wait(caller, WRAITH_FOREVER));
    check_peer(caller, serving);
    check_peer(served, calling);
    OK(wraith_connection_route(caller, words, sizeof words, &len));
    CHECK(len > 2);
    OK(wraith_connection_remote(caller, words, sizeof words, &len));
    CHECK(len > 8);
    if (callers == WRAITH_CALLERS_BY_CODE) {
        // The code was for one peer, and is used.
        wraith_connection_t late = connect_to(calling, service, 0);
        GIVES(WRAITH_WRONG_CODE, wraith_connection_wait(late, WRAITH_FOREVER));
        GIVES(WRAITH_WRONG_CODE, wraith_connection_peer(late, words, sizeof words, &len));
        OK(wraith_connection_free(late));
    }
    echo(caller, served);
    echo(served, caller);
    OK(wraith_connection_close(caller, CODE, (const uint8_t *)"enough", 6));
    check_closed(caller, WRAITH_CLOSED_HERE, 0, "");
    check_closed(served, WRAITH_CLOSED_BY_PEER, CODE, "enough");
    OK(wraith_connection_free(caller));
    OK(wraith_connection_free(served));
    OK(wraith_service_free(service));
    OK(wraith_node_free(serving));
    OK(wraith_node_free(calling));
}

static void a_wrong_code_ends_both_sides(void)
{
    wraith_node_t serving = new_node(), calling = new_node();
    wraith_service_t service = serve(serving, WRAITH_CALLERS_BY_CODE);
    uint8_t code[100];
    size_t len, dash = 0;
    OK(wraith_service_code(service, code, sizeof code, &len));
    while (code[dash] != '-')
        dash++;
    memcpy(code + dash, "-acid-accent", 12);
    wraith_connection_t caller, served = 7;
    OK(wraith_connect(calling, code, dash + 12, 0, &caller));
    GIVES(WRAITH_WRONG_CODE, wraith_connection_wait(caller, WRAITH_FOREVER));
    GIVES(WRAITH_WRONG_CODE, wraith_service_accept(service, WRAITH_FOREVER, &served));
    CHECK(served == 7);
    OK(wraith_connection_free(caller));
    OK(wraith_service_free(service));
    OK(wraith_node_free(serving));
    OK(wraith_node_free(calling));
}

static void a_service_that_is_gone_is_not_found(void)
{
    wraith_node_t serving = new_node(), calling = new_node();
    wraith_service_t service = serve(serving, WRAITH_CALLERS_BY_TICKET);
    uint8_t ticket[2000];
    size_t len;
    wraith_connection_t caller;
    OK(wraith_service_ticket(service, ticket, sizeof ticket, &len));
    // Freeing alone does not wait for the end.
    OK(wraith_service_close(service));
    OK(wraith_service_free(service));
    OK(wraith_connect(calling, ticket, len, 1000, &caller));
    GIVES(WRAITH_INVALID_STATE, wraith_connection_max_datagram(caller, &len));
    GIVES(WRAITH_TIMED_OUT, wraith_connection_wait(caller, 0));
    GIVES(WRAITH_NOT_FOUND, wraith_connection_wait(caller, WRAITH_FOREVER));
    wraith_stream_t stream;
    GIVES(WRAITH_NOT_FOUND, wraith_connection_open_stream(caller, WRAITH_FOREVER, &stream));
    OK(wraith_connection_free(caller));
    // A search that is cancelled, and one that is freed.
    OK(wraith_connect(calling, ticket, len, WRAITH_FOREVER, &caller));
    OK(wraith_connection_close(caller, CODE, NULL, 0));
    GIVES(WRAITH_CANCELLED, wraith_connection_wait(caller, WRAITH_FOREVER));
    OK(wraith_connection_free(caller));
    OK(wraith_connect(calling, ticket, len, WRAITH_FOREVER, &caller));
    OK(wraith_connection_free(caller));
    OK(wraith_node_free(serving));
    OK(wraith_node_free(calling));
}

static void a_reset_and_a_stop_arrive_with_their_codes(void)
{
    struct pair pair;
    uint8_t got[10], *lots = calloc(1, LOTS);
    size_t len, written;
    uint64_t code = 7;
    CHECK(lots != NULL);
    open_pair(&pair);
    wraith_stream_t reads = pair.stream[0], writes = pair.stream[1];
    GIVES(WRAITH_NOT_FOUND, wraith_stream_reset_code(reads, &code));
    OK(wraith_stream_read(reads, WRAITH_FOREVER, got, sizeof got, &len));
    GIVES(WRAITH_TIMED_OUT, wraith_stream_read(reads, 20, got, sizeof got, &len));
    GIVES(WRAITH_TIMED_OUT, wraith_stream_read_to_end(reads, 20, got, sizeof got, &len));
    OK(wraith_stream_reset(writes, OTHER_CODE));
    GIVES(WRAITH_STREAM_RESET, wraith_stream_read(reads, WRAITH_FOREVER, got, sizeof got, &len));
    GIVES(WRAITH_STREAM_RESET, wraith_stream_read_to_end(reads, WRAITH_FOREVER, got, sizeof got, &len));
    OK(wraith_stream_reset_code(reads, &code));
    CHECK(code == OTHER_CODE);
    GIVES(WRAITH_INVALID_STATE, wraith_stream_finish(writes));
    // In the other direction. The queue takes a part, and then the peer stops it.
    GIVES(WRAITH_NOT_FOUND, wraith_stream_stop_code(reads, &code));
    GIVES(WRAITH_TIMED_OUT, wraith_stream_write(reads, lots, LOTS, 50, &written));
    CHECK(written > 0 && written < LOTS);
    OK(wraith_stream_stop(writes, CODE));
    GIVES(WRAITH_INVALID_STATE, wraith_stream_read(writes, WRAITH_FOREVER, got, sizeof got, &len));
    wraith_status_t status;
    while ((status = wraith_stream_write(reads, lots, LOTS, WRAITH_FOREVER, &written)) == WRAITH_OK) {
    }
    CHECK(status == WRAITH_STREAM_STOPPED && written < LOTS);
    OK(wraith_stream_stop_code(reads, &code));
    CHECK(code == CODE);
    free(lots);
    free_pair(&pair);
}

static void a_peer_that_closes_early_ends_every_call(void)
{
    struct pair pair;
    uint8_t got[10];
    size_t len;
    wraith_stream_t stream = 7;
    open_pair(&pair);
    OK(wraith_connection_close(pair.connection[1], CODE, NULL, 0));
    OK(wraith_stream_read(pair.stream[0], WRAITH_FOREVER, got, sizeof got, &len));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_stream_read(pair.stream[0], WRAITH_FOREVER, got, sizeof got, &len));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_stream_read_to_end(pair.stream[0], WRAITH_FOREVER, got, 9, &len));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_stream_write(pair.stream[0], got, 1, WRAITH_FOREVER, NULL));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_stream_acked(pair.stream[0], WRAITH_FOREVER));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_connection_open_stream(pair.connection[0], WRAITH_FOREVER, &stream));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_connection_accept_stream(pair.connection[0], WRAITH_FOREVER, &stream));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_connection_send_datagram(pair.connection[0], got, 1));
    GIVES(WRAITH_CONNECTION_CLOSED, wraith_connection_read_datagram(pair.connection[0], WRAITH_FOREVER, got, 9, &len));
    CHECK(stream == 7);
    check_closed(pair.connection[0], WRAITH_CLOSED_BY_PEER, CODE, "");
    free_pair(&pair);
}

static void limits_hold(void)
{
    struct pair pair;
    uint8_t got[2000] = {0};
    size_t len = 7, max;
    open_pair(&pair);
    wraith_stream_t reads = pair.stream[0], writes = pair.stream[1];
    OK(wraith_stream_write(writes, (const uint8_t *)"0123456789", 10, WRAITH_FOREVER, NULL));
    OK(wraith_stream_finish(writes));
    GIVES(WRAITH_INVALID_INPUT, wraith_stream_read(reads, WRAITH_FOREVER, NULL, 0, &len));
    GIVES(WRAITH_EXHAUSTED, wraith_stream_read_to_end(reads, WRAITH_FOREVER, got, 10, &len));
    OK(wraith_stream_read(reads, WRAITH_FOREVER, got, 1, &len));
    CHECK(len == 1 && got[0] == 'x');
    OK(wraith_stream_read_to_end(reads, WRAITH_FOREVER, got, 10, &len));
    CHECK(len == 10 && memcmp(got, "0123456789", 10) == 0);
    // Datagrams. One may be lost, so they are sent until one arrives.
    OK(wraith_connection_max_datagram(pair.connection[1], &max));
    CHECK(max >= 627 && max < 100000);
    uint8_t *large = calloc(1, max + 1000);
    CHECK(large != NULL);
    GIVES(WRAITH_INVALID_INPUT, wraith_connection_send_datagram(pair.connection[1], large, max + 1000));
    wraith_status_t status;
    do {
        OK(wraith_connection_send_datagram(pair.connection[1], large, 600));
        status = wraith_connection_read_datagram(pair.connection[0], 100, got, 599, &len);
    } while (status == WRAITH_TIMED_OUT);
    CHECK(status == WRAITH_BUFFER_TOO_SMALL && len == 600);
    OK(wraith_connection_read_datagram(pair.connection[0], WRAITH_FOREVER, got, 600, &len));
    CHECK(len == 600);
    free(large);
    free_pair(&pair);
}

// A call that waits on another thread.
struct waiter {
    pthread_t thread;
    enum call { ACCEPT, WAIT, ACCEPT_STREAM, READ_DATAGRAM, CLOSED, READ, ACKED } call;
    uint64_t handle;
    wraith_status_t status;
};

static void *waits(void *user)
{
    struct waiter *waiter = user;
    uint8_t got[10];
    size_t len;
    uint64_t made;
    switch (waiter->call) {
    case ACCEPT: waiter->status = wraith_service_accept(waiter->handle, WRAITH_FOREVER, &made); break;
    case WAIT: waiter->status = wraith_connection_wait(waiter->handle, WRAITH_FOREVER); break;
    case ACCEPT_STREAM: waiter->status = wraith_connection_accept_stream(waiter->handle, WRAITH_FOREVER, &made); break;
    case READ_DATAGRAM:
        waiter->status = wraith_connection_read_datagram(waiter->handle, WRAITH_FOREVER, got, sizeof got, &len);
        break;
    case CLOSED:
        waiter->status = wraith_connection_closed(waiter->handle, WRAITH_FOREVER, NULL, NULL, got, sizeof got, &len);
        break;
    case READ: waiter->status = wraith_stream_read(waiter->handle, WRAITH_FOREVER, got, sizeof got, &len); break;
    case ACKED: waiter->status = wraith_stream_acked(waiter->handle, WRAITH_FOREVER); break;
    }
    return NULL;
}

static void start(struct waiter *waiter, enum call call, uint64_t handle)
{
    waiter->call = call;
    waiter->handle = handle;
    CHECK(pthread_create(&waiter->thread, NULL, waits, waiter) == 0);
}

// The thread may or may not wait already when the handle is freed; both cases are valid.
static void ends(struct waiter *waiter, wraith_status_t wanted)
{
    CHECK(pthread_join(waiter->thread, NULL) == 0);
    CHECK(waiter->status == wanted || (wanted == WRAITH_CANCELLED && waiter->status == WRAITH_INVALID_HANDLE));
}

static void a_moment(void)
{
    const struct timespec moment = {0, 20000000};
    nanosleep(&moment, NULL);
}

static void freeing_and_closing_end_calls_that_wait(void)
{
    enum { FREE_IT, CLOSE_IT, SHUT_NODE };
    struct waiter waiters[5];
    for (int way = FREE_IT; way <= SHUT_NODE; way++) {
        wraith_node_t node = new_node();
        wraith_service_t service = serve(node, WRAITH_CALLERS_BY_TICKET);
        wraith_connection_t connection = 7;
        GIVES(WRAITH_TIMED_OUT, wraith_service_accept(service, 0, &connection));
        GIVES(WRAITH_TIMED_OUT, wraith_service_accept(service, 20, &connection));
        for (int at = 0; at < 2; at++)
            start(&waiters[at], ACCEPT, service);
        a_moment();
        if (way == CLOSE_IT)
            OK(wraith_service_close(service));
        else if (way == SHUT_NODE)
            OK(wraith_node_shutdown(node));
        if (way != FREE_IT) {
            GIVES(WRAITH_CANCELLED, wraith_service_accept(service, WRAITH_FOREVER, &connection));
            OK(wraith_service_close(service));
        }
        OK(wraith_service_free(service));
        for (int at = 0; at < 2; at++)
            ends(&waiters[at], WRAITH_CANCELLED);
        CHECK(connection == 7);
        OK(wraith_node_free(node));
    }
    struct pair pair;
    uint8_t got[10];
    size_t len;
    open_pair(&pair);
    OK(wraith_stream_read(pair.stream[0], WRAITH_FOREVER, got, sizeof got, &len));
    start(&waiters[0], ACCEPT_STREAM, pair.connection[0]);
    start(&waiters[1], READ_DATAGRAM, pair.connection[0]);
    start(&waiters[2], CLOSED, pair.connection[0]);
    start(&waiters[3], READ, pair.stream[0]);
    start(&waiters[4], ACKED, pair.stream[1]);
    a_moment();
    OK(wraith_connection_free(pair.connection[0]));
    OK(wraith_stream_free(pair.stream[0]));
    for (int at = 0; at < 4; at++)
        ends(&waiters[at], WRAITH_CANCELLED);
    // The last handles of the connection are freed, so it is closed.
    check_closed(pair.connection[1], WRAITH_CLOSED_BY_PEER, 0, "");
    // The freed stream was stopped just before.
    CHECK(pthread_join(waiters[4].thread, NULL) == 0);
    CHECK(waiters[4].status == WRAITH_CONNECTION_CLOSED || waiters[4].status == WRAITH_STREAM_STOPPED);
    OK(wraith_connection_free(pair.connection[1]));
    OK(wraith_stream_free(pair.stream[1]));
    // A search, and a stream that is stopped by its reader.
    wraith_connection_t caller = connect_to(pair.node[1], pair.service, 0);
    OK(wraith_service_free(pair.service));
    start(&waiters[0], WAIT, caller);
    OK(wraith_connection_free(caller));
    CHECK(pthread_join(waiters[0].thread, NULL) == 0);
    for (int side = 0; side < 2; side++)
        OK(wraith_node_free(pair.node[side]));
    open_pair(&pair);
    OK(wraith_stream_read(pair.stream[0], WRAITH_FOREVER, got, sizeof got, &len));
    start(&waiters[0], READ, pair.stream[0]);
    a_moment();
    OK(wraith_stream_stop(pair.stream[0], CODE));
    ends(&waiters[0], WRAITH_INVALID_STATE);
    free_pair(&pair);
}

// Closing a service delivers what its connections have finished, and closes them.
static void a_closed_service_delivers_first(void)
{
    struct pair pair;
    uint8_t got[10];
    size_t len;
    open_pair(&pair);
    OK(wraith_stream_write(pair.stream[0], (const uint8_t *)"last", 4, WRAITH_FOREVER, NULL));
    OK(wraith_stream_finish(pair.stream[0]));
    OK(wraith_service_close(pair.service));
    OK(wraith_stream_read_to_end(pair.stream[1], WRAITH_FOREVER, got, sizeof got, &len));
    CHECK(len == 4 && memcmp(got, "last", 4) == 0);
    uint32_t cause;
    OK(wraith_connection_closed(pair.connection[1], SOON_MS, &cause, NULL, got, sizeof got, &len));
    CHECK(cause == WRAITH_CLOSED_BY_PEER);
    free_pair(&pair);
}

// One side frees its handles in the given order. The rest still works, and the other side gets the bytes.
static void handles_are_freed_in_any_order(int first, int step)
{
    struct pair pair;
    uint8_t got[10];
    size_t len;
    open_pair(&pair);
    OK(wraith_stream_write(pair.stream[0], (const uint8_t *)"last", 4, WRAITH_FOREVER, NULL));
    OK(wraith_stream_finish(pair.stream[0]));
    OK(wraith_stream_read(pair.stream[0], WRAITH_FOREVER, got, sizeof got, &len));
    for (int at = 0; at < 4; at++) {
        switch ((first + at * step) % 4) {
        case 0: OK(wraith_node_free(pair.node[0])); break;
        case 1: OK(wraith_service_free(pair.service)); break;
        case 2: OK(wraith_connection_free(pair.connection[0])); break;
        case 3: OK(wraith_stream_free(pair.stream[0])); break;
        }
    }
    OK(wraith_stream_read_to_end(pair.stream[1], WRAITH_FOREVER, got, sizeof got, &len));
    CHECK(len == 4);
    check_closed(pair.connection[1], WRAITH_CLOSED_BY_PEER, 0, "");
    OK(wraith_node_free(pair.node[1]));
    OK(wraith_connection_free(pair.connection[1]));
    OK(wraith_stream_free(pair.stream[1]));
}

static void what_makes_no_sense_is_refused(void)
{
    wraith_node_t node = new_node();
    wraith_serve_options_t options = {.struct_size = sizeof options, .callers = WRAITH_CALLERS_CONTACTS};
    uint64_t made = 7;
    char long_name[300];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    GIVES(WRAITH_INVALID_INPUT, wraith_serve(node, &options, &made));
    options.name = text(long_name);
    GIVES(WRAITH_INVALID_INPUT, wraith_serve(node, &options, &made));
    options.callers = 9;
    GIVES(WRAITH_INVALID_INPUT, wraith_serve(node, &options, &made));
    options.callers = WRAITH_CALLERS_BY_TICKET;
    options.isolated = 2;
    GIVES(WRAITH_INVALID_INPUT, wraith_serve(node, &options, &made));
    options.isolated = 1;
    options.bind = text("nowhere");
    GIVES(WRAITH_INVALID_INPUT, wraith_serve(node, &options, &made));
    GIVES(WRAITH_INVALID_INPUT, wraith_serve(node, NULL, NULL));
    GIVES(WRAITH_INVALID_INPUT, wraith_connect(node, (const uint8_t *)"hello", 5, 0, &made));
    GIVES(WRAITH_INVALID_INPUT, wraith_connect(node, NULL, 0, 0, &made));
    GIVES(WRAITH_NOT_FOUND, wraith_connect_to_contact(node, (const uint8_t *)"anna", 4, (const uint8_t *)"echo", 4, 0, &made));
    CHECK(made == 7);
    // The ticket of an offer.
    char path[300];
    struct seen seen;
    new_seen(&seen, 0);
    wraith_transfer_t offer = offer_one(node, in_folder(path, sizeof path, "film"), WRAITH_OFFER_BY_TICKET, &seen);
    uint8_t source[2000];
    size_t len = source_of(offer, source, sizeof source);
    OK(wraith_connect(node, source, len, 0, &made));
    GIVES(WRAITH_INVALID_INPUT, wraith_connection_wait(made, WRAITH_FOREVER));
    OK(wraith_connection_free(made));
    OK(wraith_transfer_free(offer));
    AWAIT(&seen, released);
    OK(wraith_node_free(node));
}

// The events of a service come from the beginning. The last one follows the close.
static void a_service_reports_its_events(void)
{
    wraith_node_t node = new_node(), caller = new_node();
    wraith_service_t service = serve(node, WRAITH_CALLERS_BY_CODE);
    wraith_connection_t connection = connect_to(caller, service, 0), served;
    OK(wraith_service_accept(service, WRAITH_FOREVER, &served));
    OK(wraith_connection_wait(connection, WRAITH_FOREVER));
    struct seen seen, freed;
    new_seen(&seen, 0);
    new_seen(&freed, 0);
    wraith_callbacks_t told = callbacks(&seen);
    GIVES(WRAITH_INVALID_INPUT, wraith_service_watch(service, NULL));
    OK(wraith_service_watch(service, &told));
    AWAIT(&seen, events);
    OK(wraith_service_close(service));
    AWAIT(&seen, released);
    CHECK(seen.codes_used == 1 && seen.done == 1 && seen.failed == 0 && seen.asked == 0);
    OK(wraith_service_free(service));
    service = serve(node, WRAITH_CALLERS_BY_TICKET);
    told = callbacks(&freed);
    OK(wraith_service_watch(service, &told));
    OK(wraith_service_free(service));
    AWAIT(&freed, released);
    CHECK(freed.done == 0 && freed.failed == 0);
    OK(wraith_connection_free(connection));
    OK(wraith_connection_free(served));
    OK(wraith_node_free(node));
    OK(wraith_node_free(caller));
}

int main(int count, char **words)
{
    CHECK(count == 2);
    snprintf(folder, sizeof folder, "%s", words[1]);
    char path[300];
    write_file(in_folder(path, sizeof path, "film"), 1000, 1);
    what_makes_no_sense_is_refused();
    a_caller_gets_an_answer(WRAITH_CALLERS_BY_TICKET);
    a_caller_gets_an_answer(WRAITH_CALLERS_BY_CODE);
    a_caller_gets_an_answer(WRAITH_CALLERS_CONTACTS);
    a_wrong_code_ends_both_sides();
    a_service_that_is_gone_is_not_found();
    a_reset_and_a_stop_arrive_with_their_codes();
    a_peer_that_closes_early_ends_every_call();
    limits_hold();
    freeing_and_closing_end_calls_that_wait();
    a_closed_service_delivers_first();
    a_service_reports_its_events();
    for (int first = 0; first < 4; first++) {
        handles_are_freed_in_any_order(first, 1);
        handles_are_freed_in_any_order(first, 3);
    }
    await_end_of_threads();
    puts("connections: all as it should be");
    return 0;
}
