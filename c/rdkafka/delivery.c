/* Trackers, and the delivery callbacks. */
#include "delivery.h"

#include <stdlib.h>
#include <string.h>

bool cl_delivery_wanted(const cl_handle *handle)
{
    const cl_callbacks *callbacks = &handle->callbacks;
    return callbacks->dr != NULL || callbacks->dr_msg != NULL || callbacks->dr_events;
}

static void link_tracker(cl_tracker *tracker)
{
    cl_handle *handle = tracker->handle;
    (void)pthread_mutex_lock(&handle->mutex);
    tracker->next = handle->trackers;
    if (tracker->next != NULL) {
        tracker->next->previous = tracker;
    }
    handle->trackers = tracker;
    (void)pthread_mutex_unlock(&handle->mutex);
}

static void unlink_tracker(cl_tracker *tracker)
{
    cl_handle *handle = tracker->handle;
    (void)pthread_mutex_lock(&handle->mutex);
    *(tracker->previous == NULL ? &handle->trackers : &tracker->previous->next) = tracker->next;
    if (tracker->next != NULL) {
        tracker->next->previous = tracker->previous;
    }
    (void)pthread_mutex_unlock(&handle->mutex);
}

cl_tracker *cl_tracker_new(cl_handle *handle, int flags, void *payload, size_t size, void *opaque)
{
    bool copy = (flags & RD_KAFKA_MSG_F_COPY) != 0 && payload != NULL;
    size_t behind = copy ? size : 0;
    if (size > SIZE_MAX / 4) {
        return NULL;
    }
    cl_tracker *tracker = malloc(sizeof *tracker + behind + size + CL_ENVELOPE_OVERHEAD);
    if (tracker == NULL) {
        return NULL;
    }
    *tracker = (cl_tracker){.handle = handle, .opaque = opaque, .payload = payload, .size = size};
    if (copy) {
        tracker->payload = tracker + 1;
        memcpy(tracker->payload, payload, size);
    }
    tracker->envelope = (uint8_t *)(tracker + 1) + behind;
    link_tracker(tracker);
    return tracker;
}

void cl_tracker_sent(cl_tracker *tracker, int flags)
{
    tracker->free_payload = (flags & RD_KAFKA_MSG_F_FREE) != 0 && (flags & RD_KAFKA_MSG_F_COPY) == 0;
}

static void discard(cl_tracker *tracker)
{
    if (tracker->free_payload) {
        free(tracker->payload);
    }
    free(tracker);
}

void cl_tracker_free(cl_tracker *tracker)
{
    if (tracker != NULL) {
        unlink_tracker(tracker);
        discard(tracker);
    }
}

void cl_trackers_free(cl_handle *handle)
{
    while (handle->trackers != NULL) {
        cl_tracker *first = handle->trackers;
        handle->trackers = first->next;
        discard(first);
    }
}

cl_tracker *cl_delivery_show(rd_kafka_message_t *message)
{
    cl_tracker *tracker = message->_private;
    message->payload = tracker->payload;
    message->len = tracker->size;
    message->_private = tracker->opaque;
    return tracker;
}

/* The message is librdkafka's own: it gets back what we changed, because headers and timestamps hang on its address. */
void cl_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    rd_kafka_message_t *shown = (rd_kafka_message_t *)(uintptr_t)message;
    const rd_kafka_message_t before = *message;
    cl_tracker *tracker = cl_delivery_show(shown);
    tracker->handle->callbacks.dr_msg(rk, shown, opaque);
    shown->payload = before.payload;
    shown->len = before.len;
    shown->_private = before._private;
    cl_tracker_free(tracker);
}

void cl_on_delivery_old(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                        void *msg_opaque)
{
    cl_tracker *tracker = msg_opaque;
    (void)payload, (void)len;
    tracker->handle->callbacks.dr(rk, tracker->payload, tracker->size, err, opaque, tracker->opaque);
    cl_tracker_free(tracker);
}
