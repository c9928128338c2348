// Two people exchange messages over TCP in an encrypted wraith session (bindings/MESSENGER.md):
//   messenger listen PORT          messenger connect HOST PORT
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wraith.h>

enum { FRAME_MAX = 65535, TEXT_MAX = 65000 };
static uint8_t body[FRAME_MAX], plain[FRAME_MAX], line[TEXT_MAX + 1];

static void fail(const char *what)
{
    fprintf(stderr, "messenger: %s\n", what);
    exit(1);
}

static void must(wraith_status_t status)
{
    static char words[300];
    if (status != WRAITH_OK)
        fail((wraith_last_error((uint8_t *)words, sizeof words - 1, &(size_t){0}), words));
}

static int open_socket(int count, char **words)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    int listens = count == 3 && strcmp(words[1], "listen") == 0, yes = 1;
    if ((!listens && (count != 4 || strcmp(words[1], "connect") != 0)) ||
        getaddrinfo(listens ? "0.0.0.0" : words[2], words[count - 1], &hints, &found) != 0)
        fail("usage: messenger listen PORT | messenger connect HOST PORT");
    int made = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if ((listens ? bind : connect)(made, found->ai_addr, found->ai_addrlen) != 0 || (listens && listen(made, 1) != 0))
        fail(listens ? "cannot listen there" : "nobody listens there");
    getsockname(made, found->ai_addr, &found->ai_addrlen);
    if (listens)
        printf("listening on %d\n", ntohs(((struct sockaddr_in *)found->ai_addr)->sin_port));
    freeaddrinfo(found);
    return listens && fflush(stdout) == 0 ? accept(made, NULL, NULL) : made;
}

// Reads a frame into `body`. Returns 0 at the end of the stream.
static size_t read_frame(int from)
{
    uint8_t head[4] = {0};
    ssize_t got = recv(from, head, sizeof head, MSG_WAITALL);
    size_t len = (size_t)head[2] << 8 | head[3];
    if (got != 0 && (got != 4 || head[0] || head[1] || !len || recv(from, body, len, MSG_WAITALL) != (ssize_t)len))
        fail("this is no frame");
    return len;
}

// Writes `body` as a frame.
static void write_frame(int to, size_t len)
{
    uint8_t head[4] = {0, 0, (uint8_t)(len >> 8), (uint8_t)len};
    if (send(to, head, 4, MSG_NOSIGNAL | MSG_MORE) != 4 || send(to, body, len, MSG_NOSIGNAL) != (ssize_t)len)
        fail("the connection broke");
}

static void say(int to, wraith_session_t session, const uint8_t *text, size_t len)
{
    must(wraith_session_seal(session, NULL, 0, text, len, body, sizeof body, &len, NULL));
    write_frame(to, len);
}

static void print_line(const char *before, const uint8_t *text, size_t len)
{
    fputs(before, stdout);
    for (size_t at = 0; at < len; at++)
        if (text[at] >= 32 && text[at] != 127)
            putchar(text[at]);
    putchar('\n');
    fflush(stdout);
}

static void print_id(const char *who, const uint8_t *id, size_t len)
{
    must(wraith_node_id_to_text(id, len, plain, sizeof plain, &len));
    print_line(who, plain, len);
}

static wraith_session_t shake_hands(int peer, int is_initiator)
{
    wraith_handshake_options_t options = {.struct_size = sizeof options, .is_initiator = is_initiator,
        .prologue = {(const uint8_t *)"wraith messenger 1", 18}};
    uint8_t id[WRAITH_NODE_ID_BYTES];
    wraith_handshake_t handshake;
    wraith_session_t session;
    size_t len;
    must(wraith_identity_generate(&options.identity));
    must(wraith_identity_node_id(options.identity, id, sizeof id, &len));
    print_id("me ", id, len);
    must(wraith_handshake_new(&options, &handshake));
    for (uint32_t turn; must(wraith_handshake_turn(handshake, &turn)), turn != WRAITH_TURN_OVER;) {
        if (turn == WRAITH_TURN_WRITE) {
            must(wraith_handshake_write(handshake, NULL, 0, body, sizeof body, &len));
            write_frame(peer, len);
            continue;
        }
        if ((len = read_frame(peer)) == 0)
            fail("the other side has gone");
        must(wraith_handshake_read(handshake, body, len, plain, sizeof plain, &len));
    }
    must(wraith_handshake_peer(handshake, id, sizeof id, &len));
    print_id("peer ", id, len);
    must(wraith_handshake_session(handshake, &session));
    wraith_identity_free(options.identity);
    wraith_handshake_free(handshake);
    return session;
}

int main(int count, char **words)
{
    int peer = open_socket(count, words);
    wraith_session_t session = shake_hands(peer, count == 4);
    struct pollfd ready[2] = {{.fd = peer, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    size_t len, held = 0;
    for (;;) {
        poll(ready, 2, -1);
        if (ready[0].revents != 0) {
            if ((len = read_frame(peer)) == 0)
                return (int)wraith_session_free(session);
            must(wraith_session_open(session, NULL, 0, body, len, plain, sizeof plain, &len, NULL));
            print_line("> ", plain, len);
        }
        if (ready[1].revents == 0)
            continue;
        ssize_t got = read(STDIN_FILENO, line + held, sizeof line - held);
        held += got > 0 ? (size_t)got : 0;
        for (uint8_t *end; (end = memchr(line, '\n', held)) != NULL; memmove(line, end + 1, held)) {
            say(peer, session, line, (size_t)(end - line));
            held -= (size_t)(end + 1 - line);
        }
        if (held == sizeof line)
            fail("a line is too long");
        if (got > 0)
            continue;
        if (held > 0) // the last line has no newline
            say(peer, session, line, held);
        shutdown(peer, SHUT_WR);
        ready[1].fd = -1;
    }
}
