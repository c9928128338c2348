// Transfers between two nodes in one process: by code and by ticket; declined, postponed and cancelled; with callbacks
// that block or call the library. `files FOLDER` works in an empty folder.

#include "transfers.h"

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
    a_file_arrives(WRAITH_OFFER_BY_TICKET, "by-ticket");
    a_file_arrives(WRAITH_OFFER_BY_CODE, "by-code");
    who_says_no_gets_nothing(WRAITH_REFUSE, WRAITH_REFUSED, WRAITH_REFUSED);
    who_says_no_gets_nothing(WRAITH_POSTPONE, WRAITH_POSTPONED, WRAITH_CANCELLED);
    waiting_has_an_end();
    freeing_ends_the_waiting();
    a_blocked_callback_stops_nothing();
    await_end_of_threads();
    puts("files: all as it should be");
    return 0;
}
