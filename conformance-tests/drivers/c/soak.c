/* Writing and reading for an hour: nothing is kept of a record but a count. */
#include "kafka.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 60000 /* ms */
#define LOOK_EVERY 100 /* records: looking for the file takes longer than writing one */
#define MOST_VALUE 64U /* bytes */

typedef struct counts {
    int64_t acknowledged;
    int64_t refused;
    int64_t failed;
    int64_t read;
    int64_t wrong;
    int64_t unreadable;
    cJSON *reasons; /* how many were refused or unreadable, by code */
} counts;

static void count_reason(counts *count, const char *code)
{
    cJSON *known = cJSON_GetObjectItemCaseSensitive(count->reasons, code);
    if (known == NULL) {
        known = cJSON_AddNumberToObject(count->reasons, code, 0);
    }
    (void)cJSON_SetNumberValue(known, known->valuedouble + 1);
}

static bool goes_on(const cJSON *request)
{
    return access(string_of(request, "while"), F_OK) == 0;
}

/* The value with a number; gives its size. */
static size_t numbered(text prefix, uint64_t number, uint8_t value[MOST_VALUE])
{
    size_t size = prefix.size < MOST_VALUE - 8 ? prefix.size : MOST_VALUE - 8;
    memcpy(value, prefix.data, size);
    for (size_t i = 0; i < 8; i++) {
        value[size + i] = (uint8_t)(number >> (56 - 8 * i));
    }
    return size + 8;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *report, void *opaque)
{
    (void)rk;
    counts *count = opaque;
    *(report->err == RD_KAFKA_RESP_ERR_NO_ERROR ? &count->acknowledged : &count->failed) += 1;
}

static void sleep_until(double moment)
{
    double left = moment - kafka_now();
    if (left > 0) {
        const struct timespec pause = {(time_t)(left / 1e3), (long)(left * 1e6) % 1000000000L};
        (void)nanosleep(&pause, NULL);
    }
}

static void write_all(rd_kafka_t *rk, const cJSON *request, counts *count)
{
    uint8_t value[MOST_VALUE];
    text prefix = from_hex(cJSON_GetObjectItemCaseSensitive(request, "value"));
    double rate = cJSON_GetObjectItemCaseSensitive(request, "rate")->valuedouble;
    double begun = kafka_now();
    int64_t written = 0;
    for (uint64_t tried = 0; tried % LOOK_EVERY != 0 || goes_on(request); tried++) {
        size_t size = numbered(prefix, (uint64_t)written, value);
        rd_kafka_resp_err_t error =
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(string_of(request, "topic")), RD_KAFKA_V_PARTITION(0),
                              RD_KAFKA_V_VALUE(value, size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            written++;
        } else {
            count->refused++;
            count_reason(count, kafka_code_of_refusal(error));
        }
        (void)rd_kafka_poll(rk, 0);
        sleep_until(begun + (double)tried * 1e3 / rate);
    }
    (void)rd_kafka_flush(rk, PATIENCE);
    free(prefix.data);
}

cJSON *kafka_soak_write(const cJSON *request)
{
    counts count = {0};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, &count);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf, request);
    if (rk == NULL) {
        return NULL;
    }
    count.reasons = cJSON_CreateObject();
    write_all(rk, request, &count);
    rd_kafka_destroy(rk);
    cJSON *ok = cJSON_CreateObject();
    cJSON_AddNumberToObject(ok, "acknowledged", (double)count.acknowledged);
    cJSON_AddNumberToObject(ok, "refused", (double)count.refused);
    cJSON_AddNumberToObject(ok, "failed", (double)count.failed);
    cJSON_AddItemToObject(ok, "reasons", count.reasons);
    return ok;
}

static void read_one(const rd_kafka_message_t *read, text prefix, counts *count)
{
    uint8_t value[MOST_VALUE];
    size_t size = numbered(prefix, (uint64_t)(count->read + count->wrong + count->unreadable), value);
    if (read->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (read->err == RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION) {
            count->unreadable++;
            count_reason(count, kafka_code_of_message(read));
        }
    } else if (read->len == size && memcmp(read->payload, value, size) == 0) {
        count->read++;
    } else {
        count->wrong++;
    }
}

cJSON *kafka_soak_read(const cJSON *request)
{
    char errstr[512];
    counts count = {0};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "group.id", "soak", errstr, sizeof errstr);
    (void)rd_kafka_conf_set(conf, "enable.auto.commit", "false", errstr, sizeof errstr);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_CONSUMER, conf, request);
    if (rk == NULL) {
        return NULL;
    }
    count.reasons = cJSON_CreateObject();
    (void)rd_kafka_poll_set_consumer(rk);
    text prefix = from_hex(cJSON_GetObjectItemCaseSensitive(request, "value"));
    bool assigned = kafka_assign_all(rk, string_of(request, "topic"));
    while (assigned && goes_on(request)) {
        rd_kafka_message_t *read = NULL;
        for (int i = 0; i < LOOK_EVERY && (read = rd_kafka_consumer_poll(rk, 100)) != NULL; i++) {
            read_one(read, prefix, &count);
            rd_kafka_message_destroy(read);
        }
    }
    free(prefix.data);
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    cJSON *ok = cJSON_CreateObject();
    cJSON_AddNumberToObject(ok, "read", (double)count.read);
    cJSON_AddNumberToObject(ok, "wrong", (double)count.wrong);
    cJSON_AddNumberToObject(ok, "unreadable", (double)count.unreadable);
    cJSON_AddItemToObject(ok, "reasons", count.reasons);
    return assigned ? ok : fail("driver", "cannot assign");
}
