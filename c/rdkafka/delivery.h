/* Delivery reports: the application sees its own payload and opaque, not the envelope. */
#ifndef CL_DELIVERY_H
#define CL_DELIVERY_H

#include "handle.h"

/* A message on its way, when the application wants delivery reports. */
typedef struct cl_tracker {
    struct cl_tracker *next;
    struct cl_tracker *previous;
    cl_handle *handle;
    void *opaque;
    void *payload; /* the application's, or its copy behind this structure */
    size_t size;
    bool free_payload;
    uint8_t *envelope; /* behind this structure and the copy: room for the payload encrypted */
} cl_tracker;

/* Whether a handle's application wants delivery reports at all. */
bool cl_delivery_wanted(const cl_handle *handle);

/* In one block with room for the envelope, which librdkafka need not copy then. NULL without memory. With RD_KAFKA_MSG_F_FREE the tracker owns the payload from cl_tracker_sent on. */
cl_tracker *cl_tracker_new(cl_handle *handle, int flags, void *payload, size_t size, void *opaque);
void cl_tracker_sent(cl_tracker *tracker, int flags);
void cl_tracker_free(cl_tracker *tracker);

/* Frees what is left of a handle's. */
void cl_trackers_free(cl_handle *handle);

/* Callbacks for librdkafka in place of the application's. */
void cl_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque);
void cl_on_delivery_old(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                        void *msg_opaque);

/* Puts the application's payload and opaque into a reported message; the tracker is the event's to free. */
cl_tracker *cl_delivery_show(rd_kafka_message_t *message);

#endif
