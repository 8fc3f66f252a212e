/*
 * The drop-in for librdkafka against a real broker and a real key service, whose addresses kafka_e2e.py puts into the
 * environment. Covers CL-KAF-001, CL-KAF-002, CL-KAF-003, CL-KAF-010, CL-KAF-011, CL-KAF-012. Canaries are for the scan of the disk.
 */
#include "check.h"

#include <cipherlane/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY "canary-5f1d7c3ab9e04d62"
#define SLOW 20000 /* ms */

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char errstr[512];
    if (!CHECK(rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr) == RD_KAFKA_CONF_OK)) {
        (void)fprintf(stderr, "  %s\n", errstr);
    }
}

static void set_common(rd_kafka_conf_t *conf)
{
    set(conf, "bootstrap.servers", env("CL_BOOTSTRAP"));
}

/* A configuration with the settings of a role ("producer", "consumer", "stranger"). */
static rd_kafka_conf_t *configure(const char *role)
{
    char path[512];
    rd_kafka_conf_t *conf = cl_rd_kafka_conf_new();
    set_common(conf);
    set(conf, "interceptor.classes", "cipherlane");
    set(conf, "cipherlane.keyservice.urls", env("CL_URL"));
    set(conf, "cipherlane.keyservice.tls.ca", env("CL_CA"));
    (void)snprintf(path, sizeof path, "%s/%s.pem", env("CL_PKI"), role);
    set(conf, "cipherlane.keyservice.tls.certificate", path);
    (void)snprintf(path, sizeof path, "%s/%s-key.pem", env("CL_PKI"), role);
    set(conf, "cipherlane.keyservice.tls.key", path);
    return conf;
}

static rd_kafka_t *make(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char errstr[512];
    rd_kafka_t *rk = cl_rd_kafka_new(type, conf, errstr, sizeof errstr);
    if (!CHECK(rk != NULL)) {
        (void)fprintf(stderr, "  %s\n", errstr);
        exit(1);
    }
    return rk;
}

static void finish_producer(rd_kafka_t *rk)
{
    CHECK(rd_kafka_flush(rk, SLOW) == RD_KAFKA_RESP_ERR_NO_ERROR);
    cl_rd_kafka_destroy(rk);
}

/* A consumer of ours that is assigned partition 0 of a topic from its beginning. */
static rd_kafka_t *consumer_of(const char *topic, rd_kafka_conf_t *conf)
{
    set(conf, "group.id", topic);
    set(conf, "enable.auto.commit", "false");
    rd_kafka_t *rk = make(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK(rd_kafka_assign(rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    (void)rd_kafka_poll_set_consumer(rk);
    return rk;
}

static void finish_consumer(rd_kafka_t *rk)
{
    (void)rd_kafka_consumer_close(rk);
    cl_rd_kafka_destroy(rk);
}

static bool is(const rd_kafka_message_t *message, const char *value)
{
    if (value == NULL) {
        return message->payload == NULL && message->len == 0;
    }
    return message->payload != NULL && message->len == strlen(value) &&
           memcmp(message->payload, value, message->len) == 0;
}

/* Reads as many messages as there are values and compares them, in order; "!" stands for an error. */
static void expect(const char *topic, const char *const *values, size_t count)
{
    rd_kafka_t *rk = consumer_of(topic, configure("consumer"));
    for (size_t i = 0; i < count;) {
        rd_kafka_message_t *message = cl_rd_kafka_consumer_poll(rk, SLOW);
        if (!CHECK(message != NULL)) {
            break;
        }
        if (values[i] != NULL && strcmp(values[i], "!") == 0) {
            CHECK(message->err == RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION);
            CHECK(strstr(rd_kafka_message_errstr(message), topic) != NULL && message->offset == (int64_t)i);
            CHECK(strstr(rd_kafka_message_errstr(message), "partition 0") != NULL);
        } else if (!CHECK(message->err == RD_KAFKA_RESP_ERR_NO_ERROR && is(message, values[i]))) {
            (void)fprintf(stderr, "  %s: %zu: %s\n", topic, i, rd_kafka_message_errstr(message));
        }
        cl_rd_kafka_message_destroy(message);
        i++;
    }
    finish_consumer(rk);
}

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
    delivered.same = delivered.same && message->err == RD_KAFKA_RESP_ERR_NO_ERROR && is(message, sent);
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
    rd_kafka_conf_t *conf = configure("producer");
    cl_rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, conf);
    produce_all("enc.forms", rk);
    finish_producer(rk);
    CHECK(delivered.count == 9 && delivered.same);
    expect("enc.forms", ALL, 9);
}

static void old_reports(void)
{
    rd_kafka_conf_t *conf = configure("producer");
    cl_rd_kafka_conf_set_dr_cb(conf, on_delivery_old);
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, conf);
    produce_all("enc.old", rk);
    finish_producer(rk);
    CHECK(delivered.count == 9 && delivered.same);
}

static void no_reports(void)
{
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, configure("producer"));
    produce_all("enc.none", rk);
    finish_producer(rk);
    expect("enc.none", ALL, 9);
}

static void report_events(void)
{
    rd_kafka_conf_t *conf = configure("producer");
    cl_rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, conf);
    rd_kafka_queue_t *queue = cl_rd_kafka_queue_get_main(rk);
    produce_all("enc.events", rk);
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
    finish_producer(rk);
}

/* A copy of a configuration is as good as the configuration. */
static void duplicated(void)
{
    rd_kafka_conf_t *conf = configure("producer");
    cl_rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_t *copy = rd_kafka_conf_dup(conf);
    rd_kafka_conf_destroy(conf);
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, copy);
    produce_all("enc.dup", rk);
    finish_producer(rk);
    CHECK(delivered.count == 9 && delivered.same);
}

/* Key, headers and timestamp arrive as given [CL-KAF-003] [CL-KAF-012]. */
static void metadata(void)
{
    rd_kafka_t *rk = consumer_of("enc.forms", configure("consumer"));
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
    finish_consumer(rk);
}

static int called;

static void on_message(rd_kafka_message_t *message, void *opaque)
{
    CHECK(opaque == &called && is(message, ALL[called]));
    called++;
}

/* The other ways to consume: batches, callbacks, events. */
static void other_ways(void)
{
    rd_kafka_message_t *messages[9];
    rd_kafka_t *rk = consumer_of("enc.forms", configure("consumer"));
    rd_kafka_queue_t *queue = cl_rd_kafka_queue_get_consumer(rk);
    for (ssize_t got = 0, i = 0; got < 9; got += i) {
        i = cl_rd_kafka_consume_batch_queue(queue, 2000, messages, 9 - (size_t)got);
        for (ssize_t j = 0; j < i; j++) {
            CHECK(is(messages[j], ALL[got + j]));
            cl_rd_kafka_message_destroy(messages[j]);
        }
    }
    cl_rd_kafka_queue_destroy(queue);
    finish_consumer(rk);

    rk = consumer_of("enc.forms", configure("consumer"));
    queue = cl_rd_kafka_queue_get_consumer(rk);
    for (called = 0; called < 9;) {
        CHECK(cl_rd_kafka_consume_callback_queue(queue, 2000, on_message, &called) >= 0);
    }
    cl_rd_kafka_queue_destroy(queue);
    finish_consumer(rk);

    rk = consumer_of("enc.forms", configure("consumer"));
    queue = cl_rd_kafka_queue_get_consumer(rk);
    for (int i = 0; i < 9;) {
        rd_kafka_event_t *event = cl_rd_kafka_queue_poll(queue, SLOW);
        if (!CHECK(event != NULL)) {
            break;
        }
        for (const rd_kafka_message_t *message = cl_rd_kafka_event_message_next(event); message != NULL;
             message = cl_rd_kafka_event_message_next(event)) {
            CHECK(is(message, ALL[i++]));
        }
        cl_rd_kafka_event_destroy(event);
    }
    cl_rd_kafka_queue_destroy(queue);
    finish_consumer(rk);
}

/* The simple consumer: by topic and partition. */
static void simple_consumer(void)
{
    rd_kafka_message_t *messages[9];
    rd_kafka_t *rk = make(RD_KAFKA_CONSUMER, configure("consumer"));
    rd_kafka_topic_t *rkt = cl_rd_kafka_topic_new(rk, "enc.forms", NULL);
    CHECK(rd_kafka_consume_start(rkt, 0, RD_KAFKA_OFFSET_BEGINNING) == 0);
    rd_kafka_message_t *first = cl_rd_kafka_consume(rkt, 0, SLOW);
    CHECK(first != NULL && is(first, ALL[0]));
    cl_rd_kafka_message_destroy(first);
    ssize_t got = cl_rd_kafka_consume_batch(rkt, 0, SLOW, messages, 3);
    for (ssize_t i = 0; i < got; i++) {
        CHECK(is(messages[i], ALL[1 + i]));
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
    rd_kafka_conf_t *conf = configure(role);
    if (url != NULL) {
        set(conf, "cipherlane.keyservice.urls", url);
    }
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, conf);
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
    refused("stranger", "enc.refused", NULL, "not-authorized");
    refused("producer", "enc.refused", "https://127.0.0.1:1", "key-service-unavailable");
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
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, configure("producer"));
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("clear.a"), RD_KAFKA_V_VALUE(value, strlen(value)),
                               RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    finish_producer(rk);
    expect("clear.a", VALUES, 1);
}

/* The limit counts the envelope. */
static void too_large(void)
{
    static char value[1950];
    rd_kafka_conf_t *conf = configure("producer");
    set(conf, "message.max.bytes", "2000");
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *rkt = cl_rd_kafka_topic_new(rk, "enc.large", NULL);
    memset(value, 'x', sizeof value);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, value, sizeof value, NULL, 0, NULL) == -1);
    CHECK(cl_rd_kafka_last_error() == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE && cl_rd_kafka_refusal() == NULL);
    CHECK(cl_rd_kafka_produce(rkt, 0, RD_KAFKA_MSG_F_COPY, value, 1700, NULL, 0, NULL) == 0);
    rd_kafka_topic_destroy(rkt);
    finish_producer(rk);
}

static void long_values(void)
{
    static char value[200001];
    static const char *const VALUES[] = {value};
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, configure("producer"));
    memset(value, 'y', sizeof value - 1);
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("enc.long"), RD_KAFKA_V_VALUE(value, sizeof value - 1),
                               RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    finish_producer(rk);
    expect("enc.long", VALUES, 1);
}

/* librdkafka as it is, without us: what somebody else may put into a topic. */
static void raw_produce(const char *topic, void *value, size_t size)
{
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set_common(conf);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(value, size),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(rd_kafka_flush(rk, SLOW) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(rk);
}

static void our_produce(const char *topic, char *value)
{
    rd_kafka_t *rk = make(RD_KAFKA_PRODUCER, configure("producer"));
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                               RD_KAFKA_V_VALUE(value, strlen(value)), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    finish_producer(rk);
}

/* Injected plaintext and damaged envelopes are errors at their place; their neighbours are readable [CL-KAF-011]. */
static void injected(void)
{
    static const char *const VALUES[] = {"before", "!", "!", "!", "!", "after"};
    char before[] = "before";
    char after[] = "after";
    uint8_t envelope[80] = {0xC1, 0x9E, 0x01};
    our_produce("enc.injected", before);
    raw_produce("enc.injected", after, strlen(after));      /* plaintext */
    raw_produce("enc.injected", envelope, sizeof envelope); /* an unknown kid */
    raw_produce("enc.injected", envelope, 20);              /* cut */
    envelope[2] = 9;
    raw_produce("enc.injected", envelope, sizeof envelope); /* a version of tomorrow */
    our_produce("enc.injected", after);
    expect("enc.injected", VALUES, 6);
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
    return check_finish("kafka");
}
