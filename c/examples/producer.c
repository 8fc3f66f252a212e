/*
 * producer BOOTSTRAP TOPIC SETTINGS: sends each line of standard input, encrypted. The one difference from a program
 * without encryption: the header below, and the lines of SETTINGS (name=value) in the configuration.
 */
#define CIPHERLANE_REPLACES_LIBRDKAFKA
#include <cipherlane/rdkafka.h>

#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk, (void)opaque;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)fprintf(stderr, "not delivered: %s\n", rd_kafka_err2str(message->err));
        failed++;
    }
}

static int send_lines(rd_kafka_t *rk, const char *topic)
{
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t size = getline(&line, &capacity, stdin); size > 0; size = getline(&line, &capacity, stdin)) {
        size_t length = line[size - 1] == '\n' ? (size_t)size - 1 : (size_t)size;
        rd_kafka_resp_err_t error =
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE(line, length),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK), RD_KAFKA_V_END);
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
            const char *why = cl_rd_kafka_refusal();
            (void)fprintf(stderr, "not sent: %s\n", why == NULL ? rd_kafka_err2str(error) : why);
            failed++;
            break;
        }
        (void)rd_kafka_poll(rk, 0);
    }
    free(line);
    return rd_kafka_flush(rk, 30000) == RD_KAFKA_RESP_ERR_NO_ERROR && failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    char errstr[512];
    if (argc != 4) {
        (void)fprintf(stderr, "usage: producer BOOTSTRAP TOPIC SETTINGS < lines\n");
        return 2;
    }
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argv[1]);
    set_from_file(conf, argv[3]);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (rk == NULL) {
        (void)fprintf(stderr, "%s\n", errstr);
        return 2;
    }
    int result = send_lines(rk, argv[2]);
    rd_kafka_destroy(rk);
    return result;
}
