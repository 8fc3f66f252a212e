/*
 * consumer BOOTSTRAP TOPIC SETTINGS COUNT: reads COUNT records of a topic's partition 0 from its beginning and prints each
 * value as a line. A record that cannot be decrypted is an error at its place.
 */
#define CIPHERLANE_REPLACES_LIBRDKAFKA
#include <cipherlane/rdkafka.h>

#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0, or 1 for a record that is an error. */
static int show(const rd_kafka_message_t *message)
{
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)fprintf(stderr, "%s\n", rd_kafka_message_errstr(message));
        return 1;
    }
    (void)fwrite(message->payload, 1, message->len, stdout);
    (void)fputc('\n', stdout);
    return 0;
}

static int read_records(rd_kafka_t *rk, unsigned long count)
{
    int failed = 0;
    while (count > 0) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 30000);
        if (message == NULL) {
            (void)fprintf(stderr, "nothing came for 30 seconds\n");
            return 1;
        }
        failed |= show(message);
        rd_kafka_message_destroy(message);
        count--;
    }
    return failed;
}

int main(int argc, char **argv)
{
    char errstr[512];
    if (argc != 5) {
        (void)fprintf(stderr, "usage: consumer BOOTSTRAP TOPIC SETTINGS COUNT\n");
        return 2;
    }
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "group.id", "example");
    set_from_file(conf, argv[3]);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    if (rk == NULL) {
        (void)fprintf(stderr, "%s\n", errstr);
        return 2;
    }
    (void)rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, argv[2], 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    (void)rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    int result = read_records(rk, strtoul(argv[4], NULL, 10));
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return result;
}
