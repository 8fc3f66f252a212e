/*
 * A load like rdkafka_performance's: kafka_load produce|consume plain|drop-in BOOTSTRAP TOPIC SIZE WARM_UP COUNT CONNECTIONS.
 * Every record is compared with what was sent. Prints {"cpu_us": …, "seconds": …} of COUNT records after WARM_UP more. Delivery reports are
 * on. The settings of the drop-in come from the file that CL_SETTINGS names.
 */
#include "../examples/settings.h"

#include <cipherlane/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MOST_CONNECTIONS 64U
#define PAYLOADS 1000U

static bool drop_in;
static unsigned long delivered;
static unsigned long failed;

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk, (void)opaque;
    delivered++;
    failed += message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0U : 1U;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, const char *bootstrap)
{
    char errstr[512];
    rd_kafka_conf_t *conf = drop_in ? cl_rd_kafka_conf_new() : rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    if (drop_in) {
        set_from_file(conf, getenv("CL_SETTINGS"));
    }
    if (type == RD_KAFKA_PRODUCER) {
        set(conf, "acks", "1");
        set(conf, "linger.ms", "50"); /* batches as large as batch.size (1 MB) lets them be, in every row */
        (drop_in ? cl_rd_kafka_conf_set_dr_msg_cb : rd_kafka_conf_set_dr_msg_cb)(conf, on_delivery);
    } else {
        set(conf, "group.id", "bench");
        set(conf, "enable.auto.commit", "false");
    }
    rd_kafka_t *rk = (drop_in ? cl_rd_kafka_new : rd_kafka_new)(type, conf, errstr, sizeof errstr);
    must(rk != NULL, errstr);
    return rk;
}

typedef struct load {
    rd_kafka_t *clients[MOST_CONNECTIONS];
    rd_kafka_topic_t *topics[MOST_CONNECTIONS];
    size_t connections;
    size_t size;
    uint8_t *payloads;
    size_t read; /* messages consumed so far */
} load;

static void produce(load *l, size_t count)
{
    unsigned long wanted = delivered + count;
    int (*call)(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *) =
        drop_in ? cl_rd_kafka_produce : rd_kafka_produce;
    for (size_t i = 0; i < count;) {
        size_t c = i / 100 % l->connections;
        if (call(l->topics[c], 0, RD_KAFKA_MSG_F_COPY, l->payloads + i % PAYLOADS * l->size, l->size, NULL, 0, NULL) ==
            0) {
            i++;
        } else {
            must((drop_in ? cl_rd_kafka_last_error() : rd_kafka_last_error()) == RD_KAFKA_RESP_ERR__QUEUE_FULL,
                 "produce");
            (void)rd_kafka_poll(l->clients[c], 10);
        }
        if (i % 1000 == 0) {
            (void)rd_kafka_poll(l->clients[c], 0);
        }
    }
    for (size_t c = 0; c < l->connections; c++) {
        must(rd_kafka_flush(l->clients[c], 60000) == RD_KAFKA_RESP_ERR_NO_ERROR, "flush");
    }
    must(delivered == wanted && failed == 0, "delivery");
}

static void consume(load *l, size_t count)
{
    rd_kafka_message_t *batch[1000];
    rd_kafka_queue_t *queue = (drop_in ? cl_rd_kafka_queue_get_consumer : rd_kafka_queue_get_consumer)(l->clients[0]);
    for (size_t i = 0; i < count;) {
        size_t most = count - i < 1000 ? count - i : 1000;
        ssize_t got =
            (drop_in ? cl_rd_kafka_consume_batch_queue : rd_kafka_consume_batch_queue)(queue, 1000, batch, most);
        for (ssize_t j = 0; j < got; j++) {
            const uint8_t *sent = l->payloads + l->read++ % PAYLOADS * l->size;
            must(batch[j]->err == RD_KAFKA_RESP_ERR_NO_ERROR && batch[j]->len == l->size &&
                     memcmp(batch[j]->payload, sent, l->size) == 0,
                 "comparison");
            (drop_in ? cl_rd_kafka_message_destroy : rd_kafka_message_destroy)(batch[j]);
        }
        i += got > 0 ? (size_t)got : 0;
    }
    (drop_in ? cl_rd_kafka_queue_destroy : rd_kafka_queue_destroy)(queue);
}

static void open_all(load *l, bool producing, const char *bootstrap, const char *topic)
{
    for (size_t c = 0; c < l->connections; c++) {
        l->clients[c] = open_client(producing ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, bootstrap);
        if (producing) {
            l->topics[c] = (drop_in ? cl_rd_kafka_topic_new : rd_kafka_topic_new)(l->clients[c], topic, NULL);
        } else {
            rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
            rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
            must(rd_kafka_assign(l->clients[c], list) == RD_KAFKA_RESP_ERR_NO_ERROR, "assign");
            rd_kafka_topic_partition_list_destroy(list);
            (void)rd_kafka_poll_set_consumer(l->clients[c]);
        }
    }
}

static double cpu_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    must(argc == 9, "kafka_load produce|consume plain|drop-in BOOTSTRAP TOPIC SIZE WARM_UP COUNT CONNECTIONS: usage");
    bool producing = strcmp(argv[1], "produce") == 0;
    drop_in = strcmp(argv[2], "drop-in") == 0;
    load l = {.size = strtoul(argv[5], NULL, 10), .connections = strtoul(argv[8], NULL, 10)};
    must(l.connections >= 1 && l.connections <= MOST_CONNECTIONS && l.size >= 1, "usage");
    l.payloads = malloc(PAYLOADS * l.size);
    for (size_t i = 0; i < PAYLOADS * l.size; i++) {
        l.payloads[i] = (uint8_t)((i * 2654435761U) >> 13U);
    }
    open_all(&l, producing, argv[3], argv[4]);
    (producing ? produce : consume)(&l, strtoul(argv[6], NULL, 10));
    double cpu = cpu_us();
    double began = seconds();
    (producing ? produce : consume)(&l, strtoul(argv[7], NULL, 10));
    (void)printf("{\"cpu_us\": %.0f, \"seconds\": %.3f}\n", cpu_us() - cpu, seconds() - began);
    for (size_t c = 0; c < l.connections; c++) {
        if (producing) {
            rd_kafka_topic_destroy(l.topics[c]);
        } else {
            (void)rd_kafka_consumer_close(l.clients[c]);
        }
        (drop_in ? cl_rd_kafka_destroy : rd_kafka_destroy)(l.clients[c]);
    }
    free(l.payloads);
    return 0;
}
