/* What the parts of the C driver that use librdkafka share; the drop-in, if it is compiled in, comes by this header. */
#ifndef KAFKA_H
#define KAFKA_H

#include "driver.h"

#ifdef DROP_IN
#define CIPHERLANE_REPLACES_LIBRDKAFKA
#include <cipherlane/rdkafka.h>
#else
#include <librdkafka/rdkafka.h>
#endif

/* The SDK's code for why the last produce of this thread failed, or that is in the text of a message that cannot be read. */
const char *kafka_code_of_refusal(rd_kafka_resp_err_t error);
const char *kafka_code_of_message(const rd_kafka_message_t *message);

/* A client with the settings of a request; takes conf. NULL after fail(). */
rd_kafka_t *kafka_make(rd_kafka_type_t type, rd_kafka_conf_t *conf, const cJSON *request);

/* Has a consumer read all partitions of a topic from their start. */
bool kafka_assign_all(rd_kafka_t *rk, const char *topic);

/* Milliseconds of a clock that only runs forward. */
double kafka_now(void);

#endif
