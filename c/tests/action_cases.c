/*
 * Failure actions, bound record keys and compression through the drop-in, with a real broker and a real key service. Covers CL-KAF-020,
 * CL-KAF-021, CL-KAF-022, CL-KAF-023, CL-KAF-024, CL-KAF-025, CL-KAF-030, CL-KAF-031, CL-ENV-045, CL-ENV-046. CL-KAF-026 is about
 * deserializers, which librdkafka has not.
 */
#include "kafka_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "cipherlane.error"
#define BAD 3 /* unreadable records of a filled topic */

/* Readable at 0, 4 and 5; a damaged envelope, an unknown version, injected plaintext between; each with a header that lies. */
static void fill(const char *topic)
{
    uint8_t envelope[80] = {0xC1, 0x9E, 0x01};
    char first[] = CANARY " first";
    char last[] = CANARY " last";
    char plain[] = "injected";
    kafka_ours(topic, first);
    kafka_raw(topic, envelope, sizeof envelope); /* its kid is unknown */
    envelope[2] = 9;
    kafka_raw(topic, envelope, 70);
    kafka_raw(topic, plain, strlen(plain));
    kafka_ours(topic, last);
}

static rd_kafka_conf_t *configure_action(const char *action)
{
    rd_kafka_conf_t *conf = kafka_configure("consumer");
    kafka_set(conf, "cipherlane.failure.action", action);
    return conf;
}

/* The last header of a name as text, "" if there is none. */
static const char *header(const rd_kafka_message_t *message, const char *name)
{
    rd_kafka_headers_t *headers = NULL;
    const void *value = NULL;
    size_t size = 0;
    bool found = rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
                 rd_kafka_header_get_last(headers, name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
    return found ? value : "";
}

static rd_kafka_message_t *next(rd_kafka_t *rk)
{
    rd_kafka_message_t *message = cl_rd_kafka_consumer_poll(rk, SLOW);
    if (!CHECK(message != NULL)) {
        exit(1);
    }
    return message;
}

/* [CL-KAF-021]: neighbours come, at their offsets; one by one, in a batch, and as events. */
static void skip(void)
{
    cl_numbers numbers;
    rd_kafka_message_t *batch[6];
    fill(T("enc.act.skip"));
    rd_kafka_t *rk = kafka_consumer(T("enc.act.skip"), configure_action("skip"));
    for (int i = 0; i < 2; i++) {
        rd_kafka_message_t *message = next(rk);
        CHECK(message->offset == (i == 0 ? 0 : 4) && kafka_is(message, i == 0 ? CANARY " first" : CANARY " last"));
        cl_rd_kafka_message_destroy(message);
    }
    CHECK(cl_rd_kafka_consumer_poll(rk, 300) == NULL);
    CHECK(cl_rd_kafka_numbers(rk, &numbers) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(numbers.skipped == BAD && numbers.records_decrypted == 2 && numbers.failures[CL_KEY_UNKNOWN] == 1 &&
          numbers.failures[CL_UNSUPPORTED_VERSION] == 1 && numbers.failures[CL_PLAINTEXT_REJECTED] == 1);
    CHECK(numbers.keys_cached == 1 && numbers.lease_seconds_left > 0 && numbers.key_requests >= 1);
    kafka_finish_consumer(rk);

    rk = kafka_consumer(T("enc.act.skip"), configure_action("skip"));
    rd_kafka_queue_t *queue = cl_rd_kafka_queue_get_consumer(rk);
    ssize_t got = 0;
    while (got < 2) {
        ssize_t more = cl_rd_kafka_consume_batch_queue(queue, 2000, batch + got, 6 - (size_t)got);
        CHECK(more > 0);
        got += more;
    }
    CHECK(got == 2 && batch[0]->offset == 0 && batch[1]->offset == 4);
    for (ssize_t i = 0; i < got; i++) {
        cl_rd_kafka_message_destroy(batch[i]);
    }
    cl_rd_kafka_queue_destroy(queue);
    kafka_finish_consumer(rk);
}

static void skip_events(void)
{
    rd_kafka_t *rk = kafka_consumer(T("enc.act.skip"), configure_action("skip"));
    rd_kafka_queue_t *queue = cl_rd_kafka_queue_get_consumer(rk);
    int64_t last = -1;
    while (last < 4) {
        const rd_kafka_message_t *messages[6];
        rd_kafka_event_t *event = cl_rd_kafka_queue_poll(queue, SLOW);
        size_t count = cl_rd_kafka_event_message_array(event, messages, 6);
        for (size_t i = 0; i < count; i++) {
            CHECK(messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR &&
                  (messages[i]->offset == 0 || messages[i]->offset == 4));
            last = messages[i]->offset;
        }
        if (!CHECK(event != NULL)) {
            break;
        }
        cl_rd_kafka_event_destroy(event);
    }
    cl_rd_kafka_queue_destroy(queue);
    kafka_finish_consumer(rk);
}

/* [CL-KAF-020]: what concerns more than the record is an error under every action. */
static void outage(const char *action)
{
    rd_kafka_conf_t *conf = configure_action(action);
    kafka_set(conf, "cipherlane.keyservice.urls", "https://127.0.0.1:1");
    rd_kafka_t *rk = kafka_consumer(T("enc.act.skip"), conf);
    rd_kafka_message_t *message = next(rk);
    CHECK(message->offset == 0 && message->err == RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION);
    CHECK(strstr(rd_kafka_message_errstr(message), "key-service-unavailable") != NULL);
    cl_rd_kafka_message_destroy(message);
    kafka_finish_consumer(rk);
}

static void outages(void)
{
    outage("skip");
    outage("dead-letter");
    outage("mark");
}

/* What the dead-letter topic holds, read as it is, without us. */
static void check_letters(const char *topic)
{
    static const char *const CODES[BAD] = {"key-unknown", "unsupported-version", "plaintext-rejected"};
    char offset[16];
    rd_kafka_t *rk = kafka_raw_consumer(topic);
    for (int i = 0; i < BAD; i++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, SLOW);
        if (!CHECK(message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR)) {
            break;
        }
        (void)snprintf(offset, sizeof offset, "%d", 1 + i);
        CHECK(strcmp(header(message, HEADER), CODES[i]) == 0);
        CHECK(strcmp(header(message, HEADER ".topic"), T("enc.act.letters")) == 0);
        CHECK(strcmp(header(message, HEADER ".partition"), "0") == 0);
        CHECK(strcmp(header(message, HEADER ".offset"), offset) == 0);
        CHECK(strcmp(header(message, HEADER ".kid"), i == 0 ? "00000000000000000000000000000000" : "") == 0);
        CHECK(strcmp(header(message, "own"), "kept") == 0 && message->key_len == 3 &&
              memcmp(message->key, "key", 3) == 0);
        CHECK(message->len == (i == 0 ? 80U : i == 1 ? 70U : 8U));
        CHECK(i == 2 ? kafka_is(message, "injected") : memcmp(message->payload, "\xC1\x9E", 2) == 0);
        rd_kafka_message_destroy(message);
    }
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

/* [CL-KAF-022] */
static void dead_letters(void)
{
    cl_numbers numbers;
    fill(T("enc.act.letters"));
    rd_kafka_t *rk = kafka_consumer(T("enc.act.letters"), configure_action("dead-letter"));
    for (int i = 0; i < 2; i++) {
        rd_kafka_message_t *message = next(rk);
        CHECK(message->err == RD_KAFKA_RESP_ERR_NO_ERROR && message->offset == (i == 0 ? 0 : 4));
        cl_rd_kafka_message_destroy(message);
    }
    CHECK(cl_rd_kafka_numbers(rk, &numbers) == RD_KAFKA_RESP_ERR_NO_ERROR && numbers.dead_lettered == BAD);
    check_letters(T("enc.act.letters.dead-letter"));
    kafka_finish_consumer(rk);
}

/* [CL-KAF-023]: a letter that cannot be sent is met as under `fail`, and the message says both. */
static void no_letter(const char *pattern, const char *why)
{
    rd_kafka_conf_t *conf = configure_action("dead-letter");
    kafka_set(conf, "cipherlane.dead.letter.topic", pattern);
    rd_kafka_t *rk = kafka_consumer(T("enc.act.skip"), conf);
    for (int i = 0; i < 5; i++) {
        rd_kafka_message_t *message = next(rk);
        bool good = i == 0 || i == 4;
        CHECK(message->offset == i);
        CHECK(message->err == (good ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION));
        if (!good && !CHECK(strstr(rd_kafka_message_errstr(message), why) != NULL &&
                            strstr(rd_kafka_message_errstr(message), "not decrypted") != NULL)) {
            (void)fprintf(stderr, "  %s\n", rd_kafka_message_errstr(message));
        }
        cl_rd_kafka_message_destroy(message);
    }
    kafka_finish_consumer(rk);
}

static void letters_fail(void)
{
    no_letter("{topic}", "the topic itself");
    no_letter(T("enc.act.skip"), "the topic itself");
    no_letter("{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}"
              "{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}{topic}",
              "no valid name");
    no_letter("nowhere", "nknown topic");
}

/* [CL-KAF-024] [CL-KAF-025] */
static void mark(void)
{
    static const char *const CODES[] = {"", "key-unknown", "unsupported-version", "", ""};
    fill(T("enc.act.mark"));
    rd_kafka_t *rk = kafka_consumer(T("enc.act.mark"), configure_action("mark"));
    for (int i = 0; i < 5; i++) {
        rd_kafka_message_t *message = next(rk);
        CHECK(message->offset == i && strcmp(header(message, HEADER), CODES[i]) == 0);
        CHECK((message->err == RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION) == (i == 3)); /* injected plaintext */
        CHECK((i != 1 && i != 2) || memcmp(message->payload, "\xC1\x9E", 2) == 0);
        CHECK(i != 0 || kafka_is(message, CANARY " first"));
        CHECK(i == 0 || i == 4 || strcmp(header(message, "own"), "kept") == 0);
        cl_rd_kafka_message_destroy(message);
    }
    kafka_finish_consumer(rk);
}

/* An envelope of the broker as it is. */
static rd_kafka_message_t *stored(const char *topic, rd_kafka_t **rk)
{
    *rk = kafka_raw_consumer(topic);
    rd_kafka_message_t *message = rd_kafka_consumer_poll(*rk, SLOW);
    if (!CHECK(message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR)) {
        exit(1);
    }
    return message;
}

static void produce_with_key(const char *topic, const char *setting, void *value, size_t size, void *key,
                             size_t key_size)
{
    rd_kafka_conf_t *conf = kafka_configure("producer");
    kafka_set(conf, setting, topic);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf);
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY(key, key_size),
                               RD_KAFKA_V_VALUE(value, size), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    kafka_finish_producer(rk);
}

/* [CL-KAF-030]: the flag is set, and the record reads with its key, null or not, and with no other. */
static void bound_keys(void)
{
    static const char *const VALUES[] = {CANARY " bound", CANARY " bound", "!"};
    char value[] = CANARY " bound";
    char key[] = "k1";
    rd_kafka_t *rk = NULL;
    produce_with_key(T("enc.bound"), "cipherlane.record.key.topics", value, strlen(value), key, 2);
    produce_with_key(T("enc.bound"), "cipherlane.record.key.topics", value, strlen(value), NULL, 0);
    rd_kafka_message_t *message = stored(T("enc.bound"), &rk);
    CHECK(((const uint8_t *)message->payload)[3] == 4);
    kafka_raw(T("enc.bound"), message->payload, message->len); /* moved under another key */
    rd_kafka_message_destroy(message);
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    kafka_expect(T("enc.bound"), VALUES, 3);
}

/* [CL-ENV-045] */
static void compressed(void)
{
    static char value[4001];
    static const char *const VALUES[] = {value};
    rd_kafka_t *rk = NULL;
    memset(value, 'z', sizeof value - 1);
    produce_with_key(T("enc.zstd"), "cipherlane.compression.topics", value, sizeof value - 1, NULL, 0);
    rd_kafka_message_t *message = stored(T("enc.zstd"), &rk);
    CHECK(((const uint8_t *)message->payload)[3] == 1 && message->len < 200);
    rd_kafka_message_destroy(message);
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    kafka_expect(T("enc.zstd"), VALUES, 1);
}

int main(void)
{
    check_case("CL-KAF-021: skip", skip);
    check_case("CL-KAF-021: skip, events", skip_events);
    check_case("CL-KAF-020: outages", outages);
    check_case("CL-KAF-022: dead letters", dead_letters);
    check_case("CL-KAF-023: letters that cannot be sent", letters_fail);
    check_case("CL-KAF-024, CL-KAF-025: mark", mark);
    check_case("CL-KAF-030: bound record keys", bound_keys);
    check_case("CL-ENV-045: compression", compressed);
    (void)printf("on librdkafka %s\n", rd_kafka_version_str());
    return check_finish("actions");
}
