/*
 * The drop-in for librdkafka against a real broker and a real key service, whose addresses kafka_e2e.py puts into the
 * environment. Covers CL-KAF-001, CL-KAF-002, CL-KAF-003, CL-KAF-010, CL-KAF-011, CL-KAF-012. Canaries are for the scan of the disk.
 */
#include "kafka_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the delivery reports showed. */
static struct {
    int count;
    bool same;
} delivered;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    (void)rk, (void)opaque;
    const char *sent = message->_private;
    delivered.count++;
    delivered.same = delivered.same && message->err == RD_KAFKA_RESP_ERR_NO_ERROR && kafka_is(message, sent);
}

static void on_delivery_old(rd_kafka_t *rk, void *payload, size_t len, rd_kafka_resp_err_t err, void *opaque,
                            void *msg_opaque)
{
    const rd_kafka_message_t message = {.err = err, .payload = payload, .len = len, ._private = msg_opaque};
    on_delivery(rk, &message, opaque);
}

/* Every produce function, every kind of payload ownership, with delivery reports. */
static void produce_all(const char *topic, rd_kafka_t *rk)
{
    static char shared[] = CANARY " not copied";
    static char copied[] = CANARY " copied";
    rd_kafka_topic_t *rkt = cl_rd_kafka_topic_new(rk, topic, NULL);
    delivered.count = 0;
    delivered.same = true;
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, copied, strlen(copied), "k", 1, copied) == 0);
    CHECK(cl_rd_kafka_produce(rkt, 0, 0, shared, strlen(shared), NULL, 0, shared) == 0);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_FREE, strdup(copied), strlen(copied), NULL, 0, copied) == 0);
    CHECK(cl_rd_kafka_produce(rkt, 0, 0, NULL, 0, "k", 1, NULL) == 0);
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY("key", 3),
                               RD_KAFKA_V_HEADER("name", "header", 6), RD_KAFKA_V_TIMESTAMP(1234567890123),
                               RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(copied, strlen(copied)),
                               RD_KAFKA_V_OPAQUE(copied), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_vu_t vus[3] = {
        {.vtype = RD_KAFKA_VTYPE_RKT}, {.vtype = RD_KAFKA_VTYPE_VALUE}, {.vtype = RD_KAFKA_VTYPE_OPAQUE}};
    vus[0].u.rkt = rkt;
    vus[1].u.mem.ptr = shared;
    vus[1].u.mem.size = strlen(shared);
    vus[2].u.ptr = shared;
    CHECK(cl_rd_kafka_produceva(rk, vus, 3) == NULL);
    rd_kafka_message_t batch[2] = {{.payload = copied, .len = strlen(copied), ._private = copied},
                                   {.payload = shared, .len = strlen(shared), ._private = shared}};
    CHECK(cl_rd_kafka_produce_batch(rkt, 0, RD_KAFKA_MSG_F_COPY, batch, 2) == 2);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, copied, 0, NULL, 0, (void *)(uintptr_t)"") == 0);
    rd_kafka_topic_destroy(rkt);
}

static const char *const ALL[] = {
    CANARY " copied",     CANARY " not copied", CANARY " copied",     NULL, CANARY " copied",
    CANARY " not copied", CANARY " copied",     CANARY " not copied", ""};

static void all_forms(void)
{
    rd_kafka_conf_t *conf = kafka_configure("producer");
    cl_rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf);
    produce_all(T("enc.forms"), rk);
    kafka_finish_producer(rk);
    CHECK(delivered.count == 9 && delivered.same);
    kafka_expect(T("enc.forms"), ALL, 9);
}

static void old_reports(void)
{
    rd_kafka_conf_t *conf = kafka_configure("producer");
    cl_rd_kafka_conf_set_dr_cb(conf, on_delivery_old);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf);
    produce_all(T("enc.old"), rk);
    kafka_finish_producer(rk);
    CHECK(delivered.count == 9 && delivered.same);
}

static void no_reports(void)
{
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, kafka_configure("producer"));
    produce_all(T("enc.none"), rk);
    kafka_finish_producer(rk);
    kafka_expect(T("enc.none"), ALL, 9);
}

static void report_events(void)
{
    rd_kafka_conf_t *conf = kafka_configure("producer");
    cl_rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf);
    rd_kafka_queue_t *queue = cl_rd_kafka_queue_get_main(rk);
    produce_all(T("enc.events"), rk);
    while (delivered.count < 9) {
        rd_kafka_event_t *event = cl_rd_kafka_queue_poll(queue, SLOW);
        if (!CHECK(event != NULL)) {
            break;
        }
        for (const rd_kafka_message_t *message = cl_rd_kafka_event_message_next(event); message != NULL;
             message = cl_rd_kafka_event_message_next(event)) {
            on_delivery(rk, message, NULL);
        }
        cl_rd_kafka_event_destroy(event);
    }
    CHECK(delivered.count == 9 && delivered.same);
    cl_rd_kafka_queue_destroy(queue);
    kafka_finish_producer(rk);
}

/* A copy of a configuration is as good as the configuration. */
static void duplicated(void)
{
    rd_kafka_conf_t *conf = kafka_configure("producer");
    cl_rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_t *copy = rd_kafka_conf_dup(conf);
    rd_kafka_conf_destroy(conf);
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, copy);
    produce_all(T("enc.dup"), rk);
    kafka_finish_producer(rk);
    CHECK(delivered.count == 9 && delivered.same);
}

/* Key, headers and timestamp arrive as given [CL-KAF-003] [CL-KAF-012]. */
static void metadata(void)
{
    rd_kafka_t *rk = kafka_consumer(T("enc.forms"), kafka_configure("consumer"));
    for (int i = 0; i < 9; i++) {
        rd_kafka_message_t *message = cl_rd_kafka_consumer_poll(rk, SLOW);
        if (i == 4 && CHECK(message != NULL)) {
            rd_kafka_headers_t *headers = NULL;
            const void *value = NULL;
            size_t size = 0;
            CHECK(message->key_len == 3 && memcmp(message->key, "key", 3) == 0 && message->offset == 4);
            CHECK(rd_kafka_message_timestamp(message, NULL) == 1234567890123);
            CHECK(rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR);
            CHECK(rd_kafka_header_get_last(headers, "name", &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR && size == 6);
        }
        cl_rd_kafka_message_destroy(message);
    }
    kafka_finish_consumer(rk);
}

static int called;

static void on_message(rd_kafka_message_t *message, void *opaque)
{
    CHECK(opaque == &called && kafka_is(message, ALL[called]));
    called++;
}

/* The other ways to consume: batches, callbacks, events. */
static void other_ways(void)
{
    rd_kafka_message_t *messages[9];
    rd_kafka_t *rk = kafka_consumer(T("enc.forms"), kafka_configure("consumer"));
    rd_kafka_queue_t *queue = cl_rd_kafka_queue_get_consumer(rk);
    for (ssize_t got = 0, i = 0; got < 9; got += i) {
        i = cl_rd_kafka_consume_batch_queue(queue, 2000, messages, 9 - (size_t)got);
        for (ssize_t j = 0; j < i; j++) {
            CHECK(kafka_is(messages[j], ALL[got + j]));
            cl_rd_kafka_message_destroy(messages[j]);
        }
    }
    cl_rd_kafka_queue_destroy(queue);
    kafka_finish_consumer(rk);

    rk = kafka_consumer(T("enc.forms"), kafka_configure("consumer"));
    queue = cl_rd_kafka_queue_get_consumer(rk);
    for (called = 0; called < 9;) {
        CHECK(cl_rd_kafka_consume_callback_queue(queue, 2000, on_message, &called) >= 0);
    }
    cl_rd_kafka_queue_destroy(queue);
    kafka_finish_consumer(rk);

    rk = kafka_consumer(T("enc.forms"), kafka_configure("consumer"));
    queue = cl_rd_kafka_queue_get_consumer(rk);
    for (int i = 0; i < 9;) {
        rd_kafka_event_t *event = cl_rd_kafka_queue_poll(queue, SLOW);
        if (!CHECK(event != NULL)) {
            break;
        }
        for (const rd_kafka_message_t *message = cl_rd_kafka_event_message_next(event); message != NULL;
             message = cl_rd_kafka_event_message_next(event)) {
            CHECK(kafka_is(message, ALL[i++]));
        }
        cl_rd_kafka_event_destroy(event);
    }
    cl_rd_kafka_queue_destroy(queue);
    kafka_finish_consumer(rk);
}

/* The simple consumer: by topic and partition. */
static void simple_consumer(void)
{
    rd_kafka_message_t *messages[9];
    rd_kafka_t *rk = kafka_make(RD_KAFKA_CONSUMER, kafka_configure("consumer"));
    rd_kafka_topic_t *rkt = cl_rd_kafka_topic_new(rk, T("enc.forms"), NULL);
    CHECK(rd_kafka_consume_start(rkt, 0, RD_KAFKA_OFFSET_BEGINNING) == 0);
    rd_kafka_message_t *first = cl_rd_kafka_consume(rkt, 0, SLOW);
    CHECK(first != NULL && kafka_is(first, ALL[0]));
    cl_rd_kafka_message_destroy(first);
    ssize_t got = cl_rd_kafka_consume_batch(rkt, 0, SLOW, messages, 3);
    for (ssize_t i = 0; i < got; i++) {
        CHECK(kafka_is(messages[i], ALL[1 + i]));
        cl_rd_kafka_message_destroy(messages[i]);
    }
    called = 1 + (int)got;
    while (called < 9) {
        CHECK(cl_rd_kafka_consume_callback(rkt, 0, 2000, on_message, &called) >= 0);
    }
    CHECK(rd_kafka_consume_stop(rkt, 0) == 0);
    rd_kafka_topic_destroy(rkt);
    cl_rd_kafka_destroy(rk);
}

static void refused(const char *role, const char *topic, const char *url, const char *code)
{
    char value[] = CANARY " must not be sent";
    rd_kafka_conf_t *conf = kafka_configure(role);
    if (url != NULL) {
        kafka_set(conf, "cipherlane.keyservice.urls", url);
    }
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *rkt = cl_rd_kafka_topic_new(rk, topic, NULL);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, value, strlen(value), NULL, 0, NULL) == -1);
    CHECK(cl_rd_kafka_last_error() == RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION);
    const char *why = cl_rd_kafka_refusal();
    if (!CHECK(why != NULL && strstr(why, topic) != NULL && strstr(why, code) != NULL)) {
        (void)fprintf(stderr, "  %s\n", why == NULL ? "no reason" : why);
    }
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_VALUE(value, strlen(value)), RD_KAFKA_V_END) ==
          RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION);
    rd_kafka_message_t batch[1] = {{.payload = value, .len = strlen(value)}};
    CHECK(cl_rd_kafka_produce_batch(rkt, 0, RD_KAFKA_MSG_F_COPY, batch, 1) == 0);
    CHECK(batch[0].err == RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION);
    CHECK(rd_kafka_outq_len(rk) == 0);
    rd_kafka_topic_destroy(rkt);
    cl_rd_kafka_destroy(rk);
}

static void refusals(void)
{
    refused("producer", "forbid.a", NULL, "topic-forbidden");
    refused("producer", "unknown", NULL, "topic-unknown");
    refused("stranger", T("enc.refused"), NULL, "not-authorized");
    refused("producer", T("enc.refused"), "https://127.0.0.1:1", "key-service-unavailable");
}

static void bad_configuration(void)
{
    char errstr[512];
    rd_kafka_conf_t *conf = cl_rd_kafka_conf_new();
    CHECK(rd_kafka_conf_set(conf, "cipherlane.keyservice.url", "x", errstr, sizeof errstr) == RD_KAFKA_CONF_INVALID);
    CHECK(strstr(errstr, "'cipherlane.keyservice.urls'") != NULL); /* [CL-CFG-001] */
    CHECK(cl_rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr) == NULL);
    CHECK(strstr(errstr, "is required") != NULL); /* [CL-CFG-002] */
    rd_kafka_conf_destroy(conf);
    conf = rd_kafka_conf_new(); /* not ours */
    CHECK(cl_rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr) == NULL);
    rd_kafka_conf_destroy(conf);
}

static void clear_topic(void)
{
    static const char *const VALUES[] = {"in the clear"};
    char value[] = "in the clear";
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, kafka_configure("producer"));
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(T("clear.a")), RD_KAFKA_V_VALUE(value, strlen(value)),
                               RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    kafka_finish_producer(rk);
    kafka_expect(T("clear.a"), VALUES, 1);
}

/* The limit counts the envelope. */
static void too_large(void)
{
    static char value[1950];
    rd_kafka_conf_t *conf = kafka_configure("producer");
    kafka_set(conf, "message.max.bytes", "2000");
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *rkt = cl_rd_kafka_topic_new(rk, T("enc.large"), NULL);
    memset(value, 'x', sizeof value);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, value, sizeof value, NULL, 0, NULL) == -1);
    CHECK(cl_rd_kafka_last_error() == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE && cl_rd_kafka_refusal() == NULL);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, value, 1700, NULL, 0, NULL) == 0);
    rd_kafka_topic_destroy(rkt);
    kafka_finish_producer(rk);
}

static void long_values(void)
{
    static char value[200001];
    static const char *const VALUES[] = {value};
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, kafka_configure("producer"));
    memset(value, 'y', sizeof value - 1);
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(T("enc.long")), RD_KAFKA_V_VALUE(value, sizeof value - 1),
                               RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    kafka_finish_producer(rk);
    kafka_expect(T("enc.long"), VALUES, 1);
}

/* Injected plaintext and damaged envelopes are errors at their place; their neighbours are readable [CL-KAF-011]. */
static void injected(void)
{
    static const char *const VALUES[] = {"before", "!", "!", "!", "!", "after"};
    char before[] = "before";
    char after[] = "after";
    uint8_t envelope[80] = {0xC1, 0x9E, 0x01};
    kafka_ours(T("enc.injected"), before);
    kafka_raw(T("enc.injected"), after, strlen(after));      /* plaintext */
    kafka_raw(T("enc.injected"), envelope, sizeof envelope); /* an unknown kid */
    kafka_raw(T("enc.injected"), envelope, 20);              /* cut */
    envelope[2] = 9;
    kafka_raw(T("enc.injected"), envelope, sizeof envelope); /* a version of tomorrow */
    kafka_ours(T("enc.injected"), after);
    kafka_expect(T("enc.injected"), VALUES, 6);
}

int main(void)
{
    check_case("produce in all forms, delivery reports show the application's own", all_forms);
    check_case("delivery reports, old callback", old_reports);
    check_case("no delivery reports", no_reports);
    check_case("delivery reports as events", report_events);
    check_case("duplicated configuration", duplicated);
    check_case("key, headers, timestamp", metadata);
    check_case("batches, callbacks, events", other_ways);
    check_case("simple consumer", simple_consumer);
    check_case("refusals", refusals);
    check_case("bad configuration", bad_configuration);
    check_case("clear topic", clear_topic);
    check_case("message.max.bytes counts the envelope", too_large);
    check_case("long values", long_values);
    check_case("injected and damaged values", injected);
    (void)printf("on librdkafka %s\n", rd_kafka_version_str());
    return check_finish("kafka");
}
