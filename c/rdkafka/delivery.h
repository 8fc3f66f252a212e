/* Delivery reports: the application sees its own payload and opaque, not the envelope. */
#ifndef CL_DELIVERY_H
#define CL_DELIVERY_H

#include "handle.h"

/*
 * A message on its way, when the application wants delivery reports. It lies behind the bytes that are sent in one block, which librdkafka
 * owns (RD_KAFKA_MSG_F_FREE) and frees with its message, reported or not: no list, no lock. A null value has no block and no tracker:
 * its message carries the application's opaque.
 */
typedef struct cl_tracker {
    cl_handle *handle;
    void *opaque;
    void *payload; /* the application's, or its copy behind this structure */
    size_t size;
    void *envelope;          /* the start of the block: what is sent */
    struct cl_tracker *next; /* of those shown in the same event */
    rd_kafka_message_t *message;
    size_t sent_size;
} cl_tracker;

/* Whether a handle's application wants delivery reports at all. */
bool cl_delivery_wanted(const cl_handle *handle);

/*
 * A block that begins with room for the payload (not NULL) encrypted. NULL without memory. A payload that the application gives to
 * librdkafka (RD_KAFKA_MSG_F_FREE) is copied like one that it has copied.
 */
cl_tracker *cl_tracker_new(cl_handle *handle, int flags, void *payload, size_t size, void *opaque);

/* The whole block, which librdkafka has not taken. */
void cl_tracker_free(cl_tracker *tracker);

/* Callbacks for librdkafka in place of the application's. */
void cl_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque);
void cl_on_delivery_old(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                        void *msg_opaque);

/* Puts the application's payload and opaque into a reported message of an event, until cl_delivery_hide. */
void cl_delivery_show(const void *event, rd_kafka_message_t *message);

/* Gives librdkafka's bytes back to all messages of an event, before it is destroyed. */
void cl_delivery_hide(const void *event);

#endif
