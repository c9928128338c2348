// Sends a text over a raw connection, or sends it back (bindings/ECHO.md).
//
//     echo serve | echo call CODE TEXT
//     echo me FOLDER | echo serve FOLDER NODEID | echo call FOLDER NODEID TEXT

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wraith.h>

enum { TEXT_MAX = 65536 };

static uint8_t buffer[TEXT_MAX];

static wraith_bytes_t text(const char *words)
{
    return (wraith_bytes_t){(const uint8_t *)words, strlen(words)};
}

// Ends the program if a call has failed.
static void check(wraith_status_t status)
{
    uint8_t words[500];
    size_t length = 0;
    if (status == WRAITH_OK)
        return;
    wraith_last_error(words, sizeof words, &length);
    fprintf(stderr, "echo: %.*s\n", (int)length, (const char *)words);
    exit(1);
}

static void say(const char *beginning, const uint8_t *words, size_t length)
{
    printf("%s%.*s\n", beginning, (int)length, (const char *)words);
    fflush(stdout);
}

static void say_id(const char *beginning, const uint8_t *id, size_t length)
{
    uint8_t words[WRAITH_NODE_ID_TEXT];
    size_t words_length;
    check(wraith_node_id_to_text(id, length, words, sizeof words, &words_length));
    say(beginning, words, words_length);
}

static void say_peer(wraith_connection_t connection)
{
    uint8_t id[WRAITH_NODE_ID_BYTES];
    size_t length;
    check(wraith_connection_peer(connection, id, sizeof id, &length));
    say_id("peer ", id, length);
}

// Returns a node with its state in this folder, which knows this friend.
static wraith_node_t node_of(const char *folder, const char *friend)
{
    wraith_node_options_t options = {.struct_size = sizeof options, .state_folder = text(folder)};
    wraith_bytes_t id_text = text(friend);
    uint8_t id[WRAITH_NODE_ID_BYTES];
    size_t length;
    wraith_node_t node;
    check(wraith_node_new(&options, &node));
    if (id_text.len > 0) {
        check(wraith_node_id_from_text(id_text.data, id_text.len, id, sizeof id, &length));
        check(wraith_node_add_contact(node, (const uint8_t *)"friend", 6, id, length, NULL, 0));
    }
    return node;
}

static void serve(wraith_node_t node, const wraith_serve_options_t *options)
{
    wraith_service_t service;
    wraith_connection_t connection;
    wraith_stream_t stream;
    size_t length;
    check(wraith_serve(node, options, &service));
    if (wraith_service_code(service, buffer, sizeof buffer, &length) == WRAITH_OK)
        say("code ", buffer, length);
    else
        say("ready", NULL, 0);
    check(wraith_service_accept(service, WRAITH_FOREVER, &connection));
    say_peer(connection);
    check(wraith_connection_accept_stream(connection, WRAITH_FOREVER, &stream));
    check(wraith_stream_read_to_end(stream, WRAITH_FOREVER, buffer, sizeof buffer, &length));
    check(wraith_stream_write(stream, buffer, length, WRAITH_FOREVER, NULL));
    check(wraith_stream_finish(stream));
    check(wraith_connection_closed(connection, WRAITH_FOREVER, NULL, NULL, buffer, sizeof buffer, &length));
    check(wraith_stream_free(stream));
    check(wraith_connection_free(connection));
    check(wraith_service_free(service));
}

static void call(wraith_connection_t connection, wraith_bytes_t words)
{
    wraith_stream_t stream;
    size_t length;
    check(wraith_connection_wait(connection, WRAITH_FOREVER));
    say_peer(connection);
    check(wraith_connection_open_stream(connection, WRAITH_FOREVER, &stream));
    check(wraith_stream_write(stream, words.data, words.len, WRAITH_FOREVER, NULL));
    check(wraith_stream_finish(stream));
    check(wraith_stream_read_to_end(stream, WRAITH_FOREVER, buffer, sizeof buffer, &length));
    say("> ", buffer, length);
    check(wraith_connection_close(connection, 0x100, NULL, 0));
    check(wraith_connection_closed(connection, WRAITH_FOREVER, NULL, NULL, buffer, sizeof buffer, &length));
    check(wraith_stream_free(stream));
    check(wraith_connection_free(connection));
}

int main(int count, char **words)
{
    const char *verb = count > 1 ? words[1] : "";
    wraith_serve_options_t options = {.struct_size = sizeof options};
    wraith_node_t node;
    wraith_connection_t connection;
    if (strcmp(verb, "me") == 0 && count == 3) {
        uint8_t id[WRAITH_NODE_ID_BYTES];
        size_t length;
        node = node_of(words[2], "");
        check(wraith_node_id(node, id, sizeof id, &length));
        say_id("me ", id, length);
    } else if (strcmp(verb, "serve") == 0 && (count == 2 || count == 4)) {
        node = count == 2 ? node_of("", "") : node_of(words[2], words[3]);
        options.callers = count == 2 ? WRAITH_CALLERS_BY_CODE : WRAITH_CALLERS_CONTACTS;
        options.name = text("echo");
        serve(node, &options);
    } else if (strcmp(verb, "call") == 0 && count == 4) {
        node = node_of("", "");
        check(wraith_connect(node, (const uint8_t *)words[2], strlen(words[2]), 0, &connection));
        call(connection, text(words[3]));
    } else if (strcmp(verb, "call") == 0 && count == 5) {
        node = node_of(words[2], words[3]);
        wraith_bytes_t name = text("friend"), service = text("echo");
        check(wraith_connect_to_contact(node, name.data, name.len, service.data, service.len, 0, &connection));
        call(connection, text(words[4]));
    } else {
        fprintf(stderr, "usage: echo serve | call CODE TEXT | me FOLDER | serve FOLDER NODEID | call FOLDER NODEID TEXT\n");
        return 2;
    }
    check(wraith_node_shutdown(node));
    check(wraith_node_free(node));
    return 0;
}
