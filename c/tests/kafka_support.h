/*
 * Clients for the tests with a real broker and a real key service, whose addresses kafka_e2e.py puts into the environment. Canaries are for
 * the scan of the disk.
 */
#ifndef KAFKA_SUPPORT_H
#define KAFKA_SUPPORT_H

#include "check.h"

#include <cipherlane/rdkafka.h>

#define CANARY "canary-5f1d7c3ab9e04d62"
#define SLOW 20000 /* ms */

/* A topic's name in this run: behind its first dot comes what CL_PREFIX says, so that runs do not read each other's records. */
const char *kafka_topic(const char *name);
#define T(name) kafka_topic(name)

void kafka_set(rd_kafka_conf_t *conf, const char *name, const char *value);
void kafka_set_common(rd_kafka_conf_t *conf);

/* A configuration with the settings of a role ("producer", "consumer", "both", "stranger"). */
rd_kafka_conf_t *kafka_configure(const char *role);
rd_kafka_t *kafka_make(rd_kafka_type_t type, rd_kafka_conf_t *conf);
void kafka_finish_producer(rd_kafka_t *rk);

/* A consumer of ours that is assigned partition 0 of a topic from its beginning. */
rd_kafka_t *kafka_consumer(const char *topic, rd_kafka_conf_t *conf);
void kafka_finish_consumer(rd_kafka_t *rk);

bool kafka_is(const rd_kafka_message_t *message, const char *value);

/* Reads as many messages as there are values and compares them, in order; "!" stands for an error. */
void kafka_expect(const char *topic, const char *const *values, size_t count);

/* librdkafka as it is, without us: what somebody else may put into a topic (under the key "key", with headers). */
rd_kafka_t *kafka_raw_consumer(const char *topic); /* partition 0 from its beginning */
void kafka_raw(const char *topic, void *value, size_t size);
void kafka_ours(const char *topic, char *value);

#endif
