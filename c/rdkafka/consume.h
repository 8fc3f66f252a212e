/* The callback for librdkafka in place of the application's consume_cb. */
#ifndef CL_CONSUME_H
#define CL_CONSUME_H

#include "handle.h"

void cl_on_consume(rd_kafka_message_t *message, void *opaque);

#endif
