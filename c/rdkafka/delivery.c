/* Trackers, and the delivery callbacks. */
#include "delivery.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

static cl_map shown_in = CL_MAP_INIT; /* from an event to the trackers of its messages */

bool cl_delivery_wanted(const cl_handle *handle)
{
    const cl_callbacks *callbacks = &handle->callbacks;
    return callbacks->dr != NULL || callbacks->dr_msg != NULL || callbacks->dr_events;
}

cl_tracker *cl_tracker_new(cl_handle *handle, int flags, void *payload, size_t size, void *opaque)
{
    const size_t unit = alignof(max_align_t);
    size_t copy = (flags & (RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_FREE)) != 0 ? size : 0;
    if (size > SIZE_MAX / 4) {
        return NULL;
    }
    size_t room = (size + CL_ENVELOPE_OVERHEAD + unit - 1) / unit * unit;
    uint8_t *block = malloc(room + sizeof(cl_tracker) + copy);
    if (block == NULL) {
        return NULL;
    }
    void *place = block + room;
    cl_tracker *tracker = place;
    *tracker = (cl_tracker){.handle = handle, .opaque = opaque, .payload = payload, .size = size, .envelope = block};
    if ((flags & (RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_FREE)) != 0) {
        tracker->payload = tracker + 1;
        memcpy(tracker->payload, payload, size);
    }
    return tracker;
}

void cl_tracker_free(cl_tracker *tracker)
{
    if (tracker != NULL) {
        free(tracker->envelope);
    }
}

static void show(rd_kafka_message_t *message, const cl_tracker *tracker)
{
    message->payload = tracker->payload;
    message->len = tracker->size;
    message->_private = tracker->opaque;
}

void cl_delivery_show(const void *event, rd_kafka_message_t *message)
{
    if (message->payload == NULL) {
        return;
    }
    cl_tracker *tracker = message->_private;
    tracker->message = message;
    tracker->sent_size = message->len;
    tracker->next = cl_map_get(&shown_in, event);
    show(message, tracker);
    if (!cl_map_put(&shown_in, event, tracker)) {
        message->payload =
            NULL; /* without memory nobody would take it back, and librdkafka must not free what is not its own */
    }
}

void cl_delivery_hide(const void *event)
{
    for (const cl_tracker *each = cl_map_take(&shown_in, event); each != NULL; each = each->next) {
        each->message->payload = each->envelope;
        each->message->len = each->sent_size;
    }
}

/* The message is librdkafka's own: it gets back what we changed, because headers and timestamps hang on its address. */
void cl_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    rd_kafka_message_t *shown = (rd_kafka_message_t *)(uintptr_t)message;
    const rd_kafka_message_t before = *message;
    const cl_tracker *tracker = before.payload == NULL ? NULL : before._private;
    cl_handle *handle = tracker == NULL ? cl_handle_of(rk) : tracker->handle;
    if (tracker != NULL) {
        show(shown, tracker);
    }
    if (handle != NULL) {
        handle->callbacks.dr_msg(rk, shown, opaque);
    }
    shown->payload = before.payload;
    shown->len = before.len;
    shown->_private = before._private;
}

void cl_on_delivery_old(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                        void *msg_opaque)
{
    cl_handle *handle = cl_handle_of(rk);
    if (payload != NULL) {
        const cl_tracker *tracker = msg_opaque;
        tracker->handle->callbacks.dr(rk, tracker->payload, tracker->size, err, opaque, tracker->opaque);
    } else if (handle != NULL) {
        handle->callbacks.dr(rk, NULL, len, err, opaque, msg_opaque);
    }
}
