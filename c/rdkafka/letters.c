/* The producer of dead letters: made at the first one, and used by one thread at a time. */
#include "letters.h"

#include "client.h"
#include "topics.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void on_answer(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    cl_letter *letter = message->_private;
    (void)rk, (void)opaque;
    letter->result = message->err;
    *letter->pending -= 1;
}

/* What is the consumer's alone; the rest, its connection and security, is the producer's too. */
static const char *const NOT_SHARED[] = {
    "interceptors",    "enabled_events", "group.",     "session.",      "heartbeat.",  "max.poll.",
    "enable.auto.",    "auto.",          "queued.",    "fetch.",        "offset",      "isolation.",
    "check.crcs",      "partition.ass",  "consume",    "rebalance_cb",  "stats_cb",    "statistics.",
    "error_cb",        "throttle_cb",    "dr_",        "background_ev", "enable.part", "default_topic_conf",
    "plugin.library.", "receive.",       "allow.auto."};

rd_kafka_conf_t *cl_letters_conf(const rd_kafka_conf_t *conf)
{
    static const char *const SETTINGS[][2] = {{"acks", "all"},
                                              {"linger.ms", "0"},
                                              {"message.timeout.ms", "30000"},
                                              {"message.max.bytes", "1000000000"},
                                              {"topic.metadata.propagation.max.ms", "10000"}};
    const char *filter[COUNT(NOT_SHARED)];
    char errstr[256];
    memcpy((void *)filter, (const void *)NOT_SHARED, sizeof filter);
    rd_kafka_conf_t *own = cl_kafka()->rd_kafka_conf_dup_filter(conf, COUNT(filter), filter);
    for (size_t i = 0; i < COUNT(SETTINGS); i++) {
        (void)cl_kafka()->rd_kafka_conf_set(own, SETTINGS[i][0], SETTINGS[i][1], errstr, sizeof errstr);
    }
    cl_kafka()->rd_kafka_conf_set_dr_msg_cb(own, on_answer);
    return own;
}

/* The mutex is held. */
static rd_kafka_t *producer(cl_handle *handle)
{
    char errstr[256];
    if (handle->letters == NULL && handle->letters_conf != NULL) {
        handle->letters = cl_kafka()->rd_kafka_new(RD_KAFKA_PRODUCER, handle->letters_conf, errstr, sizeof errstr);
        handle->letters_conf = handle->letters == NULL ? handle->letters_conf : NULL;
    }
    return handle->letters;
}

static void add(rd_kafka_headers_t *headers, const char *name, const char *text)
{
    (void)cl_kafka()->rd_kafka_header_remove(headers, name);
    if (text != NULL) {
        (void)cl_kafka()->rd_kafka_header_add(headers, name, -1, text, -1);
    }
}

static const char *kid_of(const rd_kafka_message_t *message, char text[CL_KID_TEXT + 1])
{
    cl_envelope envelope;
    const cl_bytes value = {message->payload, message->len};
    if (!cl_has_magic(value) || cl_envelope_parse(value, &envelope) != CL_OK) {
        return NULL;
    }
    cl_kid_write(text, &envelope.kid);
    return text;
}

/* The record's own headers, and why and from where it comes. */
static rd_kafka_headers_t *headers_of(const cl_letter *letter, const char *topic)
{
    char number[32];
    char kid[CL_KID_TEXT + 1];
    rd_kafka_headers_t *own = NULL;
    const rd_kafka_message_t *message = letter->message;
    bool has = cl_kafka()->rd_kafka_message_headers(message, &own) == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_headers_t *headers = has ? cl_kafka()->rd_kafka_headers_copy(own) : cl_kafka()->rd_kafka_headers_new(8);
    add(headers, CL_ERROR_HEADER, cl_code_name(letter->error.code));
    add(headers, CL_ERROR_HEADER ".topic", topic);
    (void)snprintf(number, sizeof number, "%d", (int)message->partition);
    add(headers, CL_ERROR_HEADER ".partition", number);
    (void)snprintf(number, sizeof number, "%lld", (long long)message->offset);
    add(headers, CL_ERROR_HEADER ".offset", number);
    add(headers, CL_ERROR_HEADER ".kid", kid_of(message, kid));
    return headers;
}

/* Hands a letter to the producer; why it could not, or NULL. */
static const char *post(rd_kafka_t *rk, const char *topic, cl_letter *letter)
{
    const rd_kafka_message_t *message = letter->message;
    rd_kafka_vu_t vus[6] = {{.vtype = RD_KAFKA_VTYPE_TOPIC},   {.vtype = RD_KAFKA_VTYPE_MSGFLAGS},
                            {.vtype = RD_KAFKA_VTYPE_VALUE},   {.vtype = RD_KAFKA_VTYPE_KEY},
                            {.vtype = RD_KAFKA_VTYPE_HEADERS}, {.vtype = RD_KAFKA_VTYPE_OPAQUE}};
    rd_kafka_headers_t *headers = headers_of(letter, cl_kafka()->rd_kafka_topic_name(message->rkt));
    vus[0].u.cstr = topic;
    vus[1].u.i = RD_KAFKA_MSG_F_COPY;
    vus[2].u.mem.ptr = message->payload;
    vus[2].u.mem.size = message->len;
    vus[3].u.mem.ptr = message->key;
    vus[3].u.mem.size = message->key_len;
    vus[4].u.headers = headers;
    vus[5].u.ptr = letter;
    rd_kafka_error_t *error = cl_kafka()->rd_kafka_produceva(rk, vus, COUNT(vus));
    if (error == NULL) {
        return NULL;
    }
    letter->result = cl_kafka()->rd_kafka_error_code(error);
    cl_kafka()->rd_kafka_error_destroy(error);
    cl_kafka()->rd_kafka_headers_destroy(headers);
    return cl_kafka()->rd_kafka_err2str(letter->result);
}

/* Sends one; *pending counts what the broker has to answer. */
static void send_one(cl_handle *handle, cl_letter *letter, unsigned *pending)
{
    char to[CL_SCOPE_MAX + 1];
    const char *topic = cl_kafka()->rd_kafka_topic_name(letter->message->rkt);
    rd_kafka_t *rk = producer(handle);
    letter->pending = pending;
    if (!cl_dead_letter_topic(handle->client->settings.dead_letter_topic, topic, to)) {
        letter->why = "the dead-letter topic would have no valid name";
    } else if (strcmp(to, topic) == 0) {
        letter->why = "the dead-letter topic would be the topic itself";
    } else if (rk == NULL) {
        letter->why = "the producer of dead letters cannot be made";
    } else {
        letter->why = post(rk, to, letter);
        *pending += letter->why == NULL ? 1U : 0U;
    }
}

void cl_letters_send(cl_handle *handle, cl_letter *letters)
{
    unsigned pending = 0;
    (void)pthread_mutex_lock(&handle->mutex);
    for (cl_letter *each = letters; each != NULL; each = each->next) {
        if (each->wanted) {
            send_one(handle, each, &pending);
        }
    }
    while (pending > 0) { /* message.timeout.ms bounds it */
        (void)cl_kafka()->rd_kafka_poll(handle->letters, 100);
    }
    (void)pthread_mutex_unlock(&handle->mutex);
    for (cl_letter *each = letters; each != NULL; each = each->next) {
        if (each->wanted && each->why == NULL && each->result != RD_KAFKA_RESP_ERR_NO_ERROR) {
            each->why = cl_kafka()->rd_kafka_err2str(each->result);
        }
    }
}

void cl_letters_close(cl_handle *handle)
{
    if (handle->letters != NULL) {
        cl_kafka()->rd_kafka_destroy(handle->letters);
    }
    if (handle->letters_conf != NULL) {
        cl_kafka()->rd_kafka_conf_destroy(handle->letters_conf);
    }
}
