// Two sides after a finished handshake.
#ifndef TWO_H
#define TWO_H

#include "test.h"

struct two {
    wraith_identity_t identity[2];
    wraith_handshake_t handshake[2];
    wraith_session_t session[2];
};

static inline wraith_handshake_options_t handshake_options(uint32_t is_initiator, wraith_identity_t identity)
{
    wraith_handshake_options_t options = {.struct_size = sizeof options, .is_initiator = is_initiator,
                                          .identity = identity, .prologue = text("wraith's tests")};
    return options;
}

// Each message is first written to a buffer that is too small, which must change nothing.
static inline void pass_message(struct two *two, int from, const char *payload)
{
    uint8_t message[3000], arrived[3000];
    size_t len, told, needed = strlen(payload);
    const uint8_t *bytes = (const uint8_t *)payload;
    OK(wraith_handshake_write_len(two->handshake[from], needed, &told));
    GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_handshake_write(two->handshake[from], bytes, needed, message, told - 1, &len));
    CHECK(len == told);
    OK(wraith_handshake_write(two->handshake[from], bytes, needed, message, told, &len));
    CHECK(len == told);
    wraith_handshake_t to = two->handshake[!from];
    if (needed > 0) {
        GIVES(WRAITH_BUFFER_TOO_SMALL, wraith_handshake_read(to, message, len, arrived, needed - 1, &told));
        CHECK(told == needed);
    }
    OK(wraith_handshake_read(to, message, len, arrived, needed, &told));
    CHECK(told == needed && memcmp(arrived, payload, needed) == 0);
    GIVES(WRAITH_REPLAYED, wraith_handshake_read(to, message, len, arrived, sizeof arrived, &told));
}

static inline void shake_hands(struct two *two)
{
    memset(two, 0, sizeof *two);
    for (int side = 0; side < 2; side++) {
        OK(wraith_identity_generate(&two->identity[side]));
        wraith_handshake_options_t options = handshake_options(side == 0, two->identity[side]);
        OK(wraith_handshake_new(&options, &two->handshake[side]));
    }
    pass_message(two, 0, "");
    pass_message(two, 1, "hello");
    pass_message(two, 0, "");
    for (int side = 0; side < 2; side++) {
        uint32_t turn;
        OK(wraith_handshake_turn(two->handshake[side], &turn));
        CHECK(turn == WRAITH_TURN_OVER);
        OK(wraith_handshake_session(two->handshake[side], &two->session[side]));
    }
}

static inline void part(struct two *two)
{
    for (int side = 0; side < 2; side++) {
        OK(wraith_session_free(two->session[side]));
        OK(wraith_handshake_free(two->handshake[side]));
        OK(wraith_identity_free(two->identity[side]));
    }
}

#endif
