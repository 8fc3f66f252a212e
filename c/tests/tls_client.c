/*
 * Produces to and consumes from a broker under the identity's certificate for some seconds: tls_client BOOTSTRAP TOPIC SECONDS SETTINGS_FILE [NAME=VALUE …], where
 * the names are librdkafka's. Every record is acknowledged and read again, once and in order; then prints {"records": …, "connections": …}, where connections are the
 * times that the client had to connect. A failure ends it with 1 and librdkafka's reason.
 */
#include "../examples/settings.h"

#include <cipherlane/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned long acknowledged;
static unsigned long received;

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk, (void)opaque;
    must(message->err == RD_KAFKA_RESP_ERR_NO_ERROR, rd_kafka_err2str(message->err));
    acknowledged++;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, char **argv)
{
    char errstr[512];
    rd_kafka_conf_t *conf = cl_rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "security.protocol", "ssl");
    set(conf, "reconnect.backoff.ms", "20");
    set(conf, "reconnect.backoff.max.ms", "200");
    set_from_file(conf, argv[4]);
    for (char **more = argv + 5; *more != NULL; more++) {
        char *equals = strchr(*more, '=');
        char *name = strndup(*more, (size_t)(equals - *more));
        set(conf, name, equals + 1);
        free(name);
    }
    if (type == RD_KAFKA_PRODUCER) {
        set(conf, "enable.idempotence", "true");
        set(conf, "message.timeout.ms", "10000");
        cl_rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    } else {
        set(conf, "group.id", "tls");
        set(conf, "auto.offset.reset", "earliest");
    }
    rd_kafka_t *rk = cl_rd_kafka_new(type, conf, errstr, sizeof errstr);
    must(rk != NULL, errstr);
    return rk;
}

static void produce(rd_kafka_t *producer, const char *topic, unsigned long number)
{
    char text[64];
    int size = snprintf(text, sizeof text, "canary-tls %lu", number);
    rd_kafka_resp_err_t failed =
        cl_rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                             RD_KAFKA_V_VALUE(text, (size_t)size), RD_KAFKA_V_END);
    must(failed == RD_KAFKA_RESP_ERR_NO_ERROR, failed == RD_KAFKA_RESP_ERR_NO_ERROR ? "" : cl_rd_kafka_refusal());
    (void)cl_rd_kafka_poll(producer, 0);
}

static void consume(rd_kafka_t *consumer, int timeout_ms)
{
    rd_kafka_message_t *message = cl_rd_kafka_consumer_poll(consumer, timeout_ms);
    if (message != NULL && message->err != RD_KAFKA_RESP_ERR__TRANSPORT) {
        char text[64];
        must(message->err == RD_KAFKA_RESP_ERR_NO_ERROR, rd_kafka_err2str(message->err));
        int size = snprintf(text, sizeof text, "canary-tls %lu", received++);
        must(message->len == (size_t)size && memcmp(message->payload, text, message->len) == 0,
             "a record is lost, doubled, or out of order");
    }
    if (message != NULL) {
        cl_rd_kafka_message_destroy(message);
    }
}

int main(int argc, char **argv)
{
    must(argc >= 5, "tls_client BOOTSTRAP TOPIC SECONDS SETTINGS_FILE [NAME=VALUE …]");
    unsigned long sent = 0;
    rd_kafka_t *producer = open_client(RD_KAFKA_PRODUCER, argv);
    rd_kafka_t *consumer = open_client(RD_KAFKA_CONSUMER, argv);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[2], RD_KAFKA_PARTITION_UA);
    must(rd_kafka_subscribe(consumer, topics) == RD_KAFKA_RESP_ERR_NO_ERROR, "subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    const time_t end = time(NULL) + strtol(argv[3], NULL, 10);
    while (time(NULL) < end) {
        produce(producer, argv[2], sent++);
        consume(consumer, 2);
    }
    must(rd_kafka_flush(producer, 15000) == RD_KAFKA_RESP_ERR_NO_ERROR && acknowledged == sent,
         "not everything is acknowledged");
    const time_t last = time(NULL) + 20;
    while (time(NULL) < last && received < sent) {
        consume(consumer, 100);
    }
    must(received == sent, "not everything came back");
    (void)printf("{\"records\": %lu}\n", received);
    (void)rd_kafka_consumer_close(consumer);
    cl_rd_kafka_destroy(consumer);
    cl_rd_kafka_destroy(producer);
    return 0;
}
