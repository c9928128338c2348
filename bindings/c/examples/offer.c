// Offers a file or folder by ticket: offer PATH [IP:PORT]. Prints the ticket, and waits for its receiver.

#include <stdio.h>
#include <string.h>

#include <wraith.h>

static wraith_bytes_t text(const char *words)
{
    return (wraith_bytes_t){(const uint8_t *)words, strlen(words)};
}

static int failed(void)
{
    uint8_t words[500];
    size_t length = 0;
    wraith_last_error(words, sizeof words, &length);
    fprintf(stderr, "offer: %.*s\n", (int)length, (const char *)words);
    return 1;
}

int main(int count, char **words)
{
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: offer PATH [IP:PORT]\n");
        return 2;
    }
    wraith_bytes_t path = text(words[1]);
    wraith_offer_options_t options = {.struct_size = sizeof options, .to = WRAITH_OFFER_BY_TICKET};
    if (count == 3)
        options.bind = text(words[2]);
    wraith_node_t node;
    wraith_transfer_t transfer;
    uint8_t ticket[2000];
    size_t length;
    if (wraith_node_new(NULL, &node) != WRAITH_OK || wraith_offer(node, &path, 1, &options, NULL, &transfer) != WRAITH_OK ||
        wraith_transfer_ticket(transfer, ticket, sizeof ticket, &length) != WRAITH_OK)
        return failed();
    printf("%.*s\n", (int)length, (const char *)ticket);
    fflush(stdout);
    if (wraith_transfer_wait(transfer, WRAITH_FOREVER) != WRAITH_OK)
        return failed();
    return 0;
}
