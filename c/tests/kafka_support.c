/* Clients for the tests with a broker and a key service. */
#include "kafka_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

const char *kafka_topic(const char *name)
{
    static char names[16][64];
    static unsigned next;
    char *made = names[next++ % 16];
    int first = (int)strcspn(name, ".") + 1;
    (void)snprintf(made, sizeof names[0], "%.*s%s%s", first, name, env("CL_PREFIX"), name + first);
    return made;
}

void kafka_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char errstr[512];
    if (!CHECK(rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr) == RD_KAFKA_CONF_OK)) {
        (void)fprintf(stderr, "  %s\n", errstr);
    }
}

void kafka_set_common(rd_kafka_conf_t *conf)
{
    kafka_set(conf, "bootstrap.servers", env("CL_BOOTSTRAP"));
}

/* A configuration with the settings of a role ("producer", "consumer", "stranger"). */
rd_kafka_conf_t *kafka_configure(const char *role)
{
    char path[512];
    rd_kafka_conf_t *conf = cl_rd_kafka_conf_new();
    kafka_set_common(conf);
    kafka_set(conf, "interceptor.classes", "cipherlane");
    kafka_set(conf, "cipherlane.keyservice.urls", env("CL_URL"));
    kafka_set(conf, "cipherlane.keyservice.connect.timeout.ms", "30000"); /* a busy machine is late, not wrong */
    kafka_set(conf, "cipherlane.keyservice.request.timeout.ms", "30000");
    kafka_set(conf, "cipherlane.keys.deadline.ms", "60000");
    kafka_set(conf, "cipherlane.keyservice.tls.ca", env("CL_CA"));
    (void)snprintf(path, sizeof path, "%s/%s.pem", env("CL_PKI"), role);
    kafka_set(conf, "cipherlane.keyservice.tls.certificate", path);
    (void)snprintf(path, sizeof path, "%s/%s-key.pem", env("CL_PKI"), role);
    kafka_set(conf, "cipherlane.keyservice.tls.key", path);
    return conf;
}

rd_kafka_t *kafka_make(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char errstr[512];
    rd_kafka_t *rk = cl_rd_kafka_new(type, conf, errstr, sizeof errstr);
    if (!CHECK(rk != NULL)) {
        (void)fprintf(stderr, "  %s\n", errstr);
        exit(1);
    }
    return rk;
}

void kafka_finish_producer(rd_kafka_t *rk)
{
    CHECK(rd_kafka_flush(rk, SLOW) == RD_KAFKA_RESP_ERR_NO_ERROR);
    cl_rd_kafka_destroy(rk);
}

/* A consumer of ours that is assigned partition 0 of a topic from its beginning. */
rd_kafka_t *kafka_consumer(const char *topic, rd_kafka_conf_t *conf)
{
    kafka_set(conf, "group.id", topic);
    kafka_set(conf, "enable.auto.commit", "false");
    rd_kafka_t *rk = kafka_make(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK(rd_kafka_assign(rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    (void)rd_kafka_poll_set_consumer(rk);
    return rk;
}

void kafka_finish_consumer(rd_kafka_t *rk)
{
    (void)rd_kafka_consumer_close(rk);
    cl_rd_kafka_destroy(rk);
}

bool kafka_is(const rd_kafka_message_t *message, const char *value)
{
    if (value == NULL) {
        return message->payload == NULL && message->len == 0;
    }
    return message->payload != NULL && message->len == strlen(value) &&
           memcmp(message->payload, value, message->len) == 0;
}

/* Reads as many messages as there are values and compares them, in order; "!" stands for an error. */
void kafka_expect(const char *topic, const char *const *values, size_t count)
{
    rd_kafka_t *rk = kafka_consumer(topic, kafka_configure("consumer"));
    for (size_t i = 0; i < count;) {
        rd_kafka_message_t *message = cl_rd_kafka_consumer_poll(rk, SLOW);
        if (!CHECK(message != NULL)) {
            break;
        }
        if (values[i] != NULL && strcmp(values[i], "!") == 0) {
            CHECK(message->err == RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION);
            CHECK(strstr(rd_kafka_message_errstr(message), topic) != NULL && message->offset == (int64_t)i);
            CHECK(strstr(rd_kafka_message_errstr(message), "partition 0") != NULL);
        } else if (!CHECK(message->err == RD_KAFKA_RESP_ERR_NO_ERROR && kafka_is(message, values[i]))) {
            (void)fprintf(stderr, "  %s: %zu: %s\n", topic, i, rd_kafka_message_errstr(message));
        }
        cl_rd_kafka_message_destroy(message);
        i++;
    }
    kafka_finish_consumer(rk);
}

/* librdkafka as it is, without us: what somebody else may put into a topic. */
void kafka_raw(const char *topic, void *value, size_t size)
{
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    kafka_set_common(conf);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    CHECK(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(value, size),
                            RD_KAFKA_V_KEY("key", 3), RD_KAFKA_V_HEADER("cipherlane.error", "lie", 3),
                            RD_KAFKA_V_HEADER("own", "kept", 4), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                            RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(rd_kafka_flush(rk, SLOW) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(rk);
}

void kafka_ours(const char *topic, char *value)
{
    rd_kafka_t *rk = kafka_make(RD_KAFKA_PRODUCER, kafka_configure("producer"));
    CHECK(cl_rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                               RD_KAFKA_V_VALUE(value, strlen(value)), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR);
    kafka_finish_producer(rk);
}

rd_kafka_t *kafka_raw_consumer(const char *topic)
{
    char errstr[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    kafka_set_common(conf);
    kafka_set(conf, "group.id", "raw");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK(rd_kafka_assign(rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    (void)rd_kafka_poll_set_consumer(rk);
    return rk;
}
