// Transfers between two processes over loopback. `two_processes FOLDER` works in an empty folder.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void offer(const char *folder, int ticket_out)
{
    char film[300], photos[300];
    snprintf(film, sizeof film, "%s/film", folder);
    snprintf(photos, sizeof photos, "%s/photos", folder);
    wraith_bytes_t paths[] = {text(film), text(photos)};
    wraith_offer_options_t options = {
        .struct_size = sizeof options, .to = WRAITH_OFFER_BY_TICKET, .bind = text("127.0.0.1:0")};
    wraith_node_t node;
    wraith_transfer_t transfer;
    uint8_t ticket[2000];
    size_t len;
    OK(wraith_node_new(NULL, &node));
    OK(wraith_offer(node, paths, 2, &options, NULL, &transfer));
    OK(wraith_transfer_ticket(transfer, ticket, sizeof ticket, &len));
    CHECK(write(ticket_out, ticket, len) == (ssize_t)len);
    close(ticket_out);
    OK(wraith_transfer_wait(transfer, WRAITH_FOREVER));
    OK(wraith_transfer_free(transfer));
    OK(wraith_node_free(node));
}

static void fetch(const char *folder, int ticket_in)
{
    uint8_t ticket[2000];
    size_t len = 0;
    ssize_t got;
    while ((got = read(ticket_in, ticket + len, sizeof ticket - len)) > 0)
        len += (size_t)got;
    close(ticket_in);
    char target[300];
    snprintf(target, sizeof target, "%s/arrived", folder);
    wraith_fetch_options_t options = {.struct_size = sizeof options, .accept_all = 1};
    wraith_node_t node;
    wraith_transfer_t transfer;
    OK(wraith_node_new(NULL, &node));
    OK(wraith_fetch(node, ticket, len, (const uint8_t *)target, strlen(target), &options, NULL, &transfer));
    OK(wraith_transfer_wait(transfer, WRAITH_FOREVER));
    wraith_progress_t progress;
    OK(wraith_transfer_progress(transfer, &progress));
    CHECK(progress.files == 41 && progress.files_total == 41);
    OK(wraith_transfer_free(transfer));
    OK(wraith_node_free(node));
}

int main(int count, char **words)
{
    CHECK(count == 2);
    char one[300], other[300];
    snprintf(one, sizeof one, "%s/film", words[1]);
    write_file(one, 5000000, 1);
    snprintf(one, sizeof one, "%s/photos", words[1]);
    CHECK(mkdir(one, 0700) == 0);
    for (uint32_t at = 0; at < 40; at++) {
        snprintf(one, sizeof one, "%s/photos/%u", words[1], at);
        write_file(one, at * 997, at);
    }
    // Fork before the library starts threads.
    int ticket[2];
    CHECK(pipe(ticket) == 0);
    pid_t sender = fork();
    CHECK(sender >= 0);
    if (sender == 0) {
        close(ticket[0]);
        offer(words[1], ticket[1]);
        return 0;
    }
    close(ticket[1]);
    fetch(words[1], ticket[0]);
    int status;
    CHECK(waitpid(sender, &status, 0) == sender && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    snprintf(one, sizeof one, "%s/film", words[1]);
    snprintf(other, sizeof other, "%s/arrived/film", words[1]);
    check_same(one, other);
    for (int at = 0; at < 40; at++) {
        snprintf(one, sizeof one, "%s/photos/%d", words[1], at);
        snprintf(other, sizeof other, "%s/arrived/photos/%d", words[1], at);
        check_same(one, other);
    }
    puts("two_processes: all as it should be");
    return 0;
}
