/* Producing and consuming with librdkafka, as any program does; the drop-in comes in by the header. */
#include "kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 60000 /* ms */
#define GROUP "conformance"

static cJSON *fail_with(rd_kafka_error_t *error)
{
    (void)fail("driver", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return NULL;
}

/*
 * The code in a text of the drop-in, "topic claims: not encrypted: CODE: detail", or at its beginning; librdkafka's own texts have
 * none.
 */
static const char *code_in(const char *message)
{
    static char code[64];
    static const char MARK[] = "crypted: ";
    const char *mark = strstr(message, MARK);
    const char *word = mark == NULL ? message : mark + sizeof MARK - 1;
    size_t size = strspn(word, "abcdefghijklmnopqrstuvwxyz-");
    if (size == 0 || size >= sizeof code || (word[size] != ':' && word[size] != '\0')) {
        return "driver";
    }
    (void)snprintf(code, sizeof code, "%.*s", (int)size, word);
    return code;
}

/* The names of the protocol that librdkafka spells otherwise, or does not know on this side. */
static const char *librdkafka_name(rd_kafka_type_t type, const char *name)
{
    static const char *const PRODUCER[] = {"acks", "compression.type", "transactional.id"};
    if (strcmp(name, "max.request.size") == 0) {
        return type == RD_KAFKA_PRODUCER ? "message.max.bytes" : NULL;
    }
    for (size_t i = 0; i < sizeof PRODUCER / sizeof PRODUCER[0]; i++) {
        if (strcmp(name, PRODUCER[i]) == 0 && type != RD_KAFKA_PRODUCER) {
            return NULL;
        }
    }
    return strcmp(name, "isolation.level") == 0 && type != RD_KAFKA_CONSUMER ? NULL : name;
}

static bool set_all(rd_kafka_conf_t *conf, rd_kafka_type_t type, const cJSON *settings)
{
    char errstr[512];
    const cJSON *setting;
    cJSON_ArrayForEach(setting, settings)
    {
        const char *name = librdkafka_name(type, setting->string);
        if (name != NULL &&
            rd_kafka_conf_set(conf, name, setting->valuestring, errstr, sizeof errstr) != RD_KAFKA_CONF_OK) {
            (void)fail(code_in(errstr), errstr);
            return false;
        }
    }
    return true;
}

rd_kafka_t *kafka_make(rd_kafka_type_t type, rd_kafka_conf_t *conf, const cJSON *request)
{
    char errstr[512];
    if (!set_all(conf, type, cJSON_GetObjectItemCaseSensitive(request, "settings"))) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_t *rk = rd_kafka_new(type, conf, errstr, sizeof errstr);
    if (rk == NULL) {
        (void)fail(code_in(errstr), errstr);
    }
    return rk;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *report, void *opaque)
{
    (void)rk, (void)opaque;
    cJSON *result = report->_private;
    if (report->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        cJSON_AddNumberToObject(result, "offset", (double)report->offset);
    } else {
        cJSON_AddItemToObject(result, "error", error_of("driver", rd_kafka_err2str(report->err)));
    }
}

static rd_kafka_headers_t *headers_of(const cJSON *record)
{
    const cJSON *pair;
    rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
    cJSON_ArrayForEach(pair, cJSON_GetObjectItemCaseSensitive(record, "headers"))
    {
        text value = from_hex(cJSON_GetArrayItem(pair, 1));
        (void)rd_kafka_header_add(headers, cJSON_GetArrayItem(pair, 0)->valuestring, -1, value.data,
                                  (ssize_t)value.size);
        free(value.data);
    }
    return headers;
}

/* Why the last produce failed. Under the preload library a program sees only librdkafka's code for it. */
static const char *refusal(rd_kafka_resp_err_t error)
{
#ifdef DROP_IN
    const char *why = cl_rd_kafka_refusal();
    return why == NULL ? rd_kafka_err2str(error) : why;
#else
    return error == RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION ? "refused: not sent" : rd_kafka_err2str(error);
#endif
}

const char *kafka_code_of_refusal(rd_kafka_resp_err_t error)
{
    return code_in(refusal(error));
}

const char *kafka_code_of_message(const rd_kafka_message_t *message)
{
    return code_in(rd_kafka_message_errstr(message));
}

static void send_record(rd_kafka_t *rk, const char *topic, const cJSON *record, cJSON *result)
{
    text key = from_hex(cJSON_GetObjectItemCaseSensitive(record, "key"));
    text value = from_hex(cJSON_GetObjectItemCaseSensitive(record, "value"));
    int32_t partition = (int32_t)cJSON_GetObjectItemCaseSensitive(record, "partition")->valuedouble;
    rd_kafka_headers_t *headers = headers_of(record);
    rd_kafka_resp_err_t error = rd_kafka_producev(
        rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key.data, key.size),
        RD_KAFKA_V_VALUE(value.data, value.size), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(result),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK), RD_KAFKA_V_END);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_headers_destroy(headers);
        cJSON_AddItemToObject(result, "error", error_of(kafka_code_of_refusal(error), refusal(error)));
    }
    free(key.data);
    free(value.data);
}

static rd_kafka_error_t *begin(rd_kafka_t *rk)
{
    rd_kafka_error_t *error = rd_kafka_init_transactions(rk, PATIENCE);
    return error == NULL ? rd_kafka_begin_transaction(rk) : error;
}

static rd_kafka_error_t *end(rd_kafka_t *rk, const char *transaction)
{
    return strcmp(transaction, "commit") == 0 ? rd_kafka_commit_transaction(rk, PATIENCE)
                                              : rd_kafka_abort_transaction(rk, PATIENCE);
}

static cJSON *produce_all(rd_kafka_t *rk, const cJSON *request)
{
    const char *transaction = string_of(request, "transaction");
    rd_kafka_error_t *error = *transaction == '\0' ? NULL : begin(rk);
    if (error != NULL) {
        return fail_with(error);
    }
    cJSON *ok = cJSON_CreateObject();
    cJSON *results = cJSON_AddArrayToObject(ok, "results");
    const cJSON *record;
    cJSON_ArrayForEach(record, cJSON_GetObjectItemCaseSensitive(request, "records"))
    {
        cJSON *result = cJSON_CreateObject();
        cJSON_AddItemToArray(results, result);
        send_record(rk, string_of(request, "topic"), record, result);
        (void)rd_kafka_poll(rk, 0);
    }
    (void)rd_kafka_flush(rk, PATIENCE);
    error = *transaction == '\0' ? NULL : end(rk, transaction);
    if (error != NULL) {
        cJSON_Delete(ok);
        return fail_with(error);
    }
    return ok;
}

cJSON *kafka_produce(const cJSON *request)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf, request);
    if (rk == NULL) {
        return NULL;
    }
    cJSON *ok = produce_all(rk, request);
    rd_kafka_destroy(rk);
    return ok;
}

double kafka_now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* One record of load: the prefix and its number. */
static void send_numbered(rd_kafka_t *rk, const char *topic, text prefix, uint64_t number, cJSON *result)
{
    uint8_t value[64];
    size_t size = prefix.size < sizeof value - 8 ? prefix.size : sizeof value - 8;
    memcpy(value, prefix.data, size);
    for (size_t i = 0; i < 8; i++) {
        value[size + i] = (uint8_t)(number >> (56 - 8 * i));
    }
    rd_kafka_resp_err_t error =
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(value, size + 8),
                          RD_KAFKA_V_OPAQUE(result), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        cJSON_AddItemToObject(result, "error", error_of(kafka_code_of_refusal(error), refusal(error)));
    }
}

static cJSON *load_all(rd_kafka_t *rk, const cJSON *request)
{
    double begun = kafka_now();
    double until = begun + cJSON_GetObjectItemCaseSensitive(request, "timeout_ms")->valuedouble;
    const struct timespec pause = {0, (long)(1e9 / cJSON_GetObjectItemCaseSensitive(request, "rate")->valuedouble)};
    const char *goes_on = string_of(request, "while");
    text prefix = from_hex(cJSON_GetObjectItemCaseSensitive(request, "value"));
    cJSON *ok = cJSON_CreateObject();
    cJSON *results = cJSON_AddArrayToObject(ok, "results");
    for (uint64_t number = 0; kafka_now() < until && access(goes_on, F_OK) == 0; number++) {
        cJSON *result = cJSON_CreateObject();
        cJSON_AddNumberToObject(result, "ms", (double)(int64_t)(kafka_now() - begun));
        cJSON_AddItemToArray(results, result);
        send_numbered(rk, string_of(request, "topic"), prefix, number, result);
        (void)rd_kafka_poll(rk, 0);
        (void)nanosleep(&pause, NULL);
    }
    (void)rd_kafka_flush(rk, PATIENCE);
    free(prefix.data);
    return ok;
}

cJSON *kafka_load(const cJSON *request)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf, request);
    if (rk == NULL) {
        return NULL;
    }
    cJSON *ok = load_all(rk, request);
    rd_kafka_destroy(rk);
    return ok;
}

bool kafka_assign_all(rd_kafka_t *rk, const char *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_resp_err_t error = rd_kafka_metadata(rk, 0, rkt, &metadata, PATIENCE);
    for (int i = 0; error == RD_KAFKA_RESP_ERR_NO_ERROR && i < metadata->topics[0].partition_cnt; i++) {
        rd_kafka_topic_partition_list_add(list, topic, metadata->topics[0].partitions[i].id)->offset =
            RD_KAFKA_OFFSET_BEGINNING;
    }
    error = error == RD_KAFKA_RESP_ERR_NO_ERROR ? rd_kafka_assign(rk, list) : error;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(rkt);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static cJSON *headers_read(const rd_kafka_message_t *read)
{
    cJSON *list = cJSON_CreateArray();
    rd_kafka_headers_t *headers = NULL;
    const char *name = NULL;
    const void *value = NULL;
    size_t size = 0;
    if (rd_kafka_message_headers(read, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return list;
    }
    for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        cJSON *pair = cJSON_CreateArray();
        cJSON_AddItemToArray(pair, cJSON_CreateString(name));
        cJSON_AddItemToArray(pair, to_hex(value, size));
        cJSON_AddItemToArray(list, pair);
    }
    return list;
}

static cJSON *describe(const rd_kafka_message_t *read)
{
    cJSON *record = cJSON_CreateObject();
    cJSON_AddNumberToObject(record, "partition", read->partition);
    cJSON_AddNumberToObject(record, "offset", (double)read->offset);
    cJSON_AddItemToObject(record, "key", to_hex(read->key, read->key_len));
    cJSON_AddItemToObject(record, "headers", headers_read(read));
    if (read->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        cJSON_AddItemToObject(record, "value", to_hex(read->payload, read->len));
    } else {
        cJSON_AddItemToObject(record, "error", error_of(kafka_code_of_message(read), rd_kafka_message_errstr(read)));
    }
    return record;
}

static cJSON *read_all(rd_kafka_t *rk, const cJSON *request)
{
    int count = (int)cJSON_GetObjectItemCaseSensitive(request, "count")->valuedouble;
    double until = kafka_now() + cJSON_GetObjectItemCaseSensitive(request, "timeout_ms")->valuedouble;
    cJSON *ok = cJSON_CreateObject();
    cJSON *records = cJSON_AddArrayToObject(ok, "records");
    for (int got = 0; got < count && kafka_now() < until;) {
        rd_kafka_message_t *read = rd_kafka_consumer_poll(rk, 200);
        if (read == NULL) {
            continue;
        }
        if (read->err == RD_KAFKA_RESP_ERR_NO_ERROR || read->err == RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION) {
            cJSON_AddItemToArray(records, describe(read));
            got++;
        }
        rd_kafka_message_destroy(read);
    }
    return ok;
}

cJSON *kafka_consume(const cJSON *request)
{
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "group.id", GROUP, errstr, sizeof errstr);
    (void)rd_kafka_conf_set(conf, "enable.auto.commit", "false", errstr, sizeof errstr);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_CONSUMER, conf, request);
    if (rk == NULL) {
        return NULL;
    }
    (void)rd_kafka_poll_set_consumer(rk);
    cJSON *ok =
        kafka_assign_all(rk, string_of(request, "topic")) ? read_all(rk, request) : fail("driver", "cannot assign");
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return ok;
}
