/*
 * The functions of librdkafka that the binding calls, as a table: in the drop-in library their addresses are linked, in the
 * preload library they are those of the librdkafka that the process has loaded, so that it never finds itself.
 */
#ifndef CL_API_H
#define CL_API_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#define KAFKA_CALLED(X)                                                                                                \
    X(rd_kafka_conf_new)                                                                                               \
    X(rd_kafka_conf_destroy)                                                                                           \
    X(rd_kafka_conf_set_dr_cb)                                                                                         \
    X(rd_kafka_conf_set_dr_msg_cb)                                                                                     \
    X(rd_kafka_conf_set_consume_cb)                                                                                    \
    X(rd_kafka_conf_set_events)                                                                                        \
    X(rd_kafka_conf_interceptor_add_on_conf_set)                                                                       \
    X(rd_kafka_conf_interceptor_add_on_conf_dup)                                                                       \
    X(rd_kafka_conf_interceptor_add_on_conf_destroy)                                                                   \
    X(rd_kafka_new)                                                                                                    \
    X(rd_kafka_destroy)                                                                                                \
    X(rd_kafka_destroy_flags)                                                                                          \
    X(rd_kafka_last_error)                                                                                             \
    X(rd_kafka_topic_new)                                                                                              \
    X(rd_kafka_topic_name)                                                                                             \
    X(rd_kafka_queue_new)                                                                                              \
    X(rd_kafka_queue_get_main)                                                                                         \
    X(rd_kafka_queue_get_consumer)                                                                                     \
    X(rd_kafka_queue_get_partition)                                                                                    \
    X(rd_kafka_queue_get_background)                                                                                   \
    X(rd_kafka_queue_destroy)                                                                                          \
    X(rd_kafka_produce)                                                                                                \
    X(rd_kafka_produceva)                                                                                              \
    X(rd_kafka_poll)                                                                                                   \
    X(rd_kafka_consumer_poll)                                                                                          \
    X(rd_kafka_consume)                                                                                                \
    X(rd_kafka_consume_batch)                                                                                          \
    X(rd_kafka_consume_callback)                                                                                       \
    X(rd_kafka_consume_queue)                                                                                          \
    X(rd_kafka_consume_batch_queue)                                                                                    \
    X(rd_kafka_consume_callback_queue)                                                                                 \
    X(rd_kafka_message_destroy)                                                                                        \
    X(rd_kafka_queue_poll)                                                                                             \
    X(rd_kafka_event_type)                                                                                             \
    X(rd_kafka_event_message_next)                                                                                     \
    X(rd_kafka_event_destroy)                                                                                          \
    X(rd_kafka_conf_dup_filter)                                                                                        \
    X(rd_kafka_conf_set)                                                                                               \
    X(rd_kafka_conf_get)                                                                                               \
    X(rd_kafka_conf_set_connect_cb)                                                                                    \
    X(rd_kafka_conf_interceptor_add_on_new)                                                                            \
    X(rd_kafka_interceptor_add_on_thread_start)                                                                        \
    X(rd_kafka_log_print)                                                                                              \
    X(rd_kafka_err2str)                                                                                                \
    X(rd_kafka_message_headers)                                                                                        \
    X(rd_kafka_message_set_headers)                                                                                    \
    X(rd_kafka_headers_new)                                                                                            \
    X(rd_kafka_headers_copy)                                                                                           \
    X(rd_kafka_headers_destroy)                                                                                        \
    X(rd_kafka_header_add)                                                                                             \
    X(rd_kafka_header_remove)                                                                                          \
    X(rd_kafka_error_new)                                                                                              \
    X(rd_kafka_error_code)                                                                                             \
    X(rd_kafka_error_destroy)

typedef struct kafka_api {
#define KAFKA_FIELD(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses): a declaration */
    KAFKA_CALLED(KAFKA_FIELD)
#undef KAFKA_FIELD
} kafka_api;

/* The table; never NULL. Aborts with a message when the process has no librdkafka, or more than one. */
const kafka_api *cl_kafka(void);

/* Whether this is the preload library, which takes its configuration from the file that CIPHERLANE_CONFIG names. */
bool cl_kafka_preloaded(void);

#endif
