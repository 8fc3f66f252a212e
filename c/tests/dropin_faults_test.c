/*
 * The n-th allocation, random number and request fails through the drop-in, for n = 1, 2, 3, … until everything succeeds: configuration,
 * producer with delivery reports, consumer, on librdkafka's own mock cluster. After each failure: no leak, no crash, and nothing in the
 * clear, neither with the broker nor in a message [CL-KAF-001] [CL-ENV-012].
 */
#include "check.h"
#include "faults.h"
#include "support.h"

#include <cipherlane/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOPIC "claims"
#define SLOW 10000 /* ms */
#define MOST_CALLS 1000

static const char CANARY[] = "canary 77ab01c9";
static char *folder;
static const char *bootstrap;
static int64_t delivered; /* offset, or -1 */

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char errstr[512];
    return rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr) == RD_KAFKA_CONF_OK;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, void (*report)(rd_kafka_t *, const rd_kafka_message_t *, void *))
{
    char errstr[512];
    rd_kafka_conf_t *conf = cl_rd_kafka_conf_new();
    bool good = set(conf, "bootstrap.servers", bootstrap) && set(conf, "group.id", "g") &&
                set(conf, "log_level", "0") && set(conf, "cipherlane.keyservice.urls", "https://127.0.0.1:1") &&
                set(conf, "cipherlane.keyservice.tls.ca", in_folder(folder, "ca.pem")) &&
                set(conf, "cipherlane.keyservice.tls.certificate", in_folder(folder, "client.pem")) &&
                set(conf, "cipherlane.keyservice.tls.key", in_folder(folder, "client.key"));
    if (report != NULL) {
        cl_rd_kafka_conf_set_dr_msg_cb(conf, report);
    }
    rd_kafka_t *rk = good ? cl_rd_kafka_new(type, conf, errstr, sizeof errstr) : NULL;
    if (rk == NULL) {
        rd_kafka_conf_destroy(conf);
    }
    return rk;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk, (void)opaque;
    CHECK(message->len == strlen(CANARY) && memcmp(message->payload, CANARY, message->len) == 0);
    CHECK(message->_private == &delivered);
    delivered = message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? message->offset : -1;
}

static bool produce(void)
{
    delivered = -1;
    rd_kafka_t *rk = open_client(RD_KAFKA_PRODUCER, on_delivery);
    if (rk == NULL) {
        return false;
    }
    rd_kafka_resp_err_t refused =
        cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(TOPIC), RD_KAFKA_V_PARTITION(0),
                             RD_KAFKA_V_VALUE((void *)(uintptr_t)CANARY, strlen(CANARY)), RD_KAFKA_V_OPAQUE(&delivered),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    CHECK(rd_kafka_flush(rk, SLOW) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK((delivered >= 0) == (refused == RD_KAFKA_RESP_ERR_NO_ERROR));
    cl_rd_kafka_destroy(rk);
    return delivered >= 0;
}

static void assign(rd_kafka_t *rk, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, TOPIC, 0)->offset = offset;
    CHECK(rd_kafka_assign(rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    (void)rd_kafka_poll_set_consumer(rk);
}

static bool consume(void)
{
    rd_kafka_t *rk = open_client(RD_KAFKA_CONSUMER, NULL);
    if (rk == NULL) {
        return false;
    }
    assign(rk, delivered);
    rd_kafka_message_t *message = cl_rd_kafka_consumer_poll(rk, SLOW);
    bool good = CHECK(message != NULL) && message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    bool plain =
        message != NULL && message->len == strlen(CANARY) && memcmp(message->payload, CANARY, message->len) == 0;
    CHECK(plain == good);
    CHECK(good || message == NULL || memmem(message->payload, message->len, CANARY, strlen(CANARY)) == NULL);
    cl_rd_kafka_message_destroy(message);
    (void)rd_kafka_consumer_close(rk);
    cl_rd_kafka_destroy(rk);
    return good;
}

static bool produce_and_consume(void)
{
    return produce() && consume();
}

static void memory(void)
{
    faults_in_turn(MEMORY, MOST_CALLS, produce_and_consume);
}

static void random_numbers(void)
{
    faults_in_turn(RANDOM, MOST_CALLS, produce_and_consume);
}

static void request(void)
{
    faults_in_turn(REQUEST, MOST_CALLS, produce_and_consume);
}

static void system_calls(void)
{
    faults_in_turn(SYSTEM, MOST_CALLS, produce_and_consume);
}

/* Everything that the mock broker holds, read without us. */
static void broker_has_envelopes(void)
{
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    CHECK(set(conf, "bootstrap.servers", bootstrap) && set(conf, "group.id", "raw"));
    CHECK(set(conf, "enable.partition.eof", "true"));
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    assign(rk, RD_KAFKA_OFFSET_BEGINNING);
    size_t count = 0;
    bool end = false;
    while (!end) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, SLOW);
        end = message == NULL || message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
        CHECK(message != NULL && (!end || message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF));
        if (!end) {
            CHECK(message->len == strlen(CANARY) + CL_ENVELOPE_OVERHEAD &&
                  memcmp(message->payload, "\xC1\x9E", 2) == 0);
            count++;
        }
        rd_kafka_message_destroy(message);
    }
    CHECK(count > 3);
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

int main(void)
{
    char errstr[512];
    folder = make_folder();
    make_pki(folder);
    rd_kafka_t *owner = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), errstr, sizeof errstr);
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(owner, 1);
    if (rd_kafka_mock_topic_create(cluster, TOPIC, 1, 1) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return 1;
    }
    bootstrap = rd_kafka_mock_cluster_bootstraps(cluster);
    check_case("drop-in: the n-th allocation fails", memory);
    check_case("drop-in: the n-th random number fails", random_numbers);
    check_case("drop-in: the n-th request fails", request);
    check_case("drop-in: the n-th system or cipher call fails", system_calls);
    check_case("drop-in: the broker has envelopes only", broker_has_envelopes);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(owner);
    remove_folder(folder);
    return check_finish("dropin_faults");
}
