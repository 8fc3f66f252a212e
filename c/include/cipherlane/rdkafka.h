/*
 * Cipherlane for librdkafka (2.0 or newer): functions of the same shapes as librdkafka's, which encrypt what is produced and decrypt
 * what is consumed. Two ways to use it:
 *
 *     #define CIPHERLANE_REPLACES_LIBRDKAFKA       // the program's own calls become these
 *     #include <cipherlane/rdkafka.h>
 *
 * or call cl_rd_kafka_… where the program calls rd_kafka_…; all of them then, because a handle made by rd_kafka_new is unknown here
 * and is refused. Settings are those of spec/configuration.md, in the same rd_kafka_conf_t:
 * rd_kafka_conf_set(conf, "cipherlane.keyservice.urls", …); "interceptor.classes" = "cipherlane" is taken too.
 *
 * Producing: a value that cannot be encrypted is not sent; the call fails with RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION (from
 * rd_kafka_last_error, or as it returns errors), and cl_rd_kafka_refusal says topic and reason. message.max.bytes counts the envelope.
 * Delivery reports show the application's own payload and opaque. RD_KAFKA_MSG_F_FREE and _COPY mean what they mean.
 * Consuming: a value that cannot be decrypted comes as a message with err RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION, whose payload is
 * the text of the error (as librdkafka does for its own errors); topic, partition, offset, key and headers stay [CL-KAF-010].
 * That is what cipherlane.failure.action = fail does, the default. `skip` leaves out records that will never be readable, `dead-letter` puts them
 * into another topic first (waiting for the broker's acknowledgement, 30 s at most), `mark` hands over the ciphertext with the header
 * cipherlane.error; what concerns more than the record, such as a key service that cannot be reached, is an error under each of them
 * [CL-KAF-020]. rd_kafka_event_message_count also counts messages that are left out.
 * Threads: as librdkafka's functions.
 */
#ifndef CIPHERLANE_RDKAFKA_H
#define CIPHERLANE_RDKAFKA_H

#include <cipherlane/cipherlane.h>
#include <librdkafka/rdkafka.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the calling thread's last call was refused for, or NULL if it was not refused. */
CL_API const char *cl_rd_kafka_refusal(void);

/* What the client of a handle counts (cl_client_numbers). RD_KAFKA_RESP_ERR__INVALID_ARG: not a handle of cl_rd_kafka_new. */
CL_API rd_kafka_resp_err_t cl_rd_kafka_numbers(rd_kafka_t *rk, cl_numbers *numbers);

/* Each has the shape of the function of librdkafka behind "cl_". */
CL_API rd_kafka_conf_t *cl_rd_kafka_conf_new(void);
CL_API void cl_rd_kafka_conf_set_dr_cb(rd_kafka_conf_t *conf,
                                       void (*dr_cb)(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err,
                                                     void *opaque, void *msg_opaque));
CL_API void cl_rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *conf,
                                           void (*dr_msg_cb)(rd_kafka_t *rk, const rd_kafka_message_t *rkmessage,
                                                             void *opaque));
CL_API void cl_rd_kafka_conf_set_consume_cb(rd_kafka_conf_t *conf,
                                            void (*consume_cb)(rd_kafka_message_t *rkmessage, void *opaque));
CL_API void cl_rd_kafka_conf_set_events(rd_kafka_conf_t *conf, int events);
CL_API rd_kafka_t *cl_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *errstr, size_t errstr_size);
CL_API void cl_rd_kafka_destroy(rd_kafka_t *rk);
CL_API void cl_rd_kafka_destroy_flags(rd_kafka_t *rk, int flags);
CL_API rd_kafka_resp_err_t cl_rd_kafka_last_error(void);
CL_API rd_kafka_topic_t *cl_rd_kafka_topic_new(rd_kafka_t *rk, const char *topic, rd_kafka_topic_conf_t *conf);
CL_API rd_kafka_queue_t *cl_rd_kafka_queue_new(rd_kafka_t *rk);
CL_API rd_kafka_queue_t *cl_rd_kafka_queue_get_main(rd_kafka_t *rk);
CL_API rd_kafka_queue_t *cl_rd_kafka_queue_get_consumer(rd_kafka_t *rk);
CL_API rd_kafka_queue_t *cl_rd_kafka_queue_get_partition(rd_kafka_t *rk, const char *topic, int32_t partition);
CL_API rd_kafka_queue_t *cl_rd_kafka_queue_get_background(rd_kafka_t *rk);
CL_API void cl_rd_kafka_queue_destroy(rd_kafka_queue_t *rkqu);

CL_API int cl_rd_kafka_produce(rd_kafka_topic_t *rkt, int32_t partition, int msgflags, void *payload, size_t len,
                               const void *key, size_t keylen, void *msg_opaque);
CL_API rd_kafka_resp_err_t cl_rd_kafka_producev(rd_kafka_t *rk, ...);
CL_API rd_kafka_error_t *cl_rd_kafka_produceva(rd_kafka_t *rk, const rd_kafka_vu_t *vus, size_t cnt);
CL_API int cl_rd_kafka_produce_batch(rd_kafka_topic_t *rkt, int32_t partition, int msgflags,
                                     rd_kafka_message_t *rkmessages, int message_cnt);

CL_API int cl_rd_kafka_poll(rd_kafka_t *rk, int timeout_ms);
CL_API rd_kafka_message_t *cl_rd_kafka_consumer_poll(rd_kafka_t *rk, int timeout_ms);
CL_API rd_kafka_message_t *cl_rd_kafka_consume(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms);
CL_API ssize_t cl_rd_kafka_consume_batch(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms,
                                         rd_kafka_message_t **rkmessages, size_t rkmessages_size);
CL_API int cl_rd_kafka_consume_callback(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms,
                                        void (*consume_cb)(rd_kafka_message_t *rkmessage, void *opaque), void *opaque);
CL_API rd_kafka_message_t *cl_rd_kafka_consume_queue(rd_kafka_queue_t *rkqu, int timeout_ms);
CL_API ssize_t cl_rd_kafka_consume_batch_queue(rd_kafka_queue_t *rkqu, int timeout_ms, rd_kafka_message_t **rkmessages,
                                               size_t rkmessages_size);
CL_API int cl_rd_kafka_consume_callback_queue(rd_kafka_queue_t *rkqu, int timeout_ms,
                                              void (*consume_cb)(rd_kafka_message_t *rkmessage, void *opaque),
                                              void *opaque);
CL_API void cl_rd_kafka_message_destroy(rd_kafka_message_t *rkmessage);
CL_API rd_kafka_event_t *cl_rd_kafka_queue_poll(rd_kafka_queue_t *rkqu, int timeout_ms);
CL_API const rd_kafka_message_t *cl_rd_kafka_event_message_next(rd_kafka_event_t *rkev);
CL_API size_t cl_rd_kafka_event_message_array(rd_kafka_event_t *rkev, const rd_kafka_message_t **rkmessages,
                                              size_t size);
CL_API void cl_rd_kafka_event_destroy(rd_kafka_event_t *rkev);

#ifdef __cplusplus
}
#endif

#ifdef CIPHERLANE_REPLACES_LIBRDKAFKA
#define rd_kafka_conf_new cl_rd_kafka_conf_new
#define rd_kafka_conf_set_dr_cb cl_rd_kafka_conf_set_dr_cb
#define rd_kafka_conf_set_dr_msg_cb cl_rd_kafka_conf_set_dr_msg_cb
#define rd_kafka_conf_set_consume_cb cl_rd_kafka_conf_set_consume_cb
#define rd_kafka_conf_set_events cl_rd_kafka_conf_set_events
#define rd_kafka_new cl_rd_kafka_new
#define rd_kafka_destroy cl_rd_kafka_destroy
#define rd_kafka_destroy_flags cl_rd_kafka_destroy_flags
#define rd_kafka_last_error cl_rd_kafka_last_error
#define rd_kafka_topic_new cl_rd_kafka_topic_new
#define rd_kafka_queue_new cl_rd_kafka_queue_new
#define rd_kafka_queue_get_main cl_rd_kafka_queue_get_main
#define rd_kafka_queue_get_consumer cl_rd_kafka_queue_get_consumer
#define rd_kafka_queue_get_partition cl_rd_kafka_queue_get_partition
#define rd_kafka_queue_get_background cl_rd_kafka_queue_get_background
#define rd_kafka_queue_destroy cl_rd_kafka_queue_destroy
#define rd_kafka_produce cl_rd_kafka_produce
#define rd_kafka_producev cl_rd_kafka_producev
#define rd_kafka_produceva cl_rd_kafka_produceva
#define rd_kafka_produce_batch cl_rd_kafka_produce_batch
#define rd_kafka_poll cl_rd_kafka_poll
#define rd_kafka_consumer_poll cl_rd_kafka_consumer_poll
#define rd_kafka_consume cl_rd_kafka_consume
#define rd_kafka_consume_batch cl_rd_kafka_consume_batch
#define rd_kafka_consume_callback cl_rd_kafka_consume_callback
#define rd_kafka_consume_queue cl_rd_kafka_consume_queue
#define rd_kafka_consume_batch_queue cl_rd_kafka_consume_batch_queue
#define rd_kafka_consume_callback_queue cl_rd_kafka_consume_callback_queue
#define rd_kafka_message_destroy cl_rd_kafka_message_destroy
#define rd_kafka_queue_poll cl_rd_kafka_queue_poll
#define rd_kafka_event_message_next cl_rd_kafka_event_message_next
#define rd_kafka_event_message_array cl_rd_kafka_event_message_array
#define rd_kafka_event_destroy cl_rd_kafka_event_destroy
#endif

#endif
