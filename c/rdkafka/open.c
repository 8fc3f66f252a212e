/* Each message is decrypted in place, or becomes an error at its place [CL-KAF-010], or what the failure action says. */
#include "open.h"

#include "attach.h"
#include "client.h"
#include "error.h"
#include "letters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256U
#define ERROR_TEXT 768U
#define FLAGS_OFFSET 3U
#define LARGEST 1073741824U

/* Messages on their way to the application. */
typedef struct opening {
    cl_handle *handle;
    const void *owner; /* NULL: each message itself */
    cl_letter *first;  /* those that the application is not to get, in order */
    cl_letter **last;
} opening;

static const void *owner_of(const opening *batch, const rd_kafka_message_t *message)
{
    return batch->owner == NULL ? message : batch->owner;
}

/* The message becomes an error of its own; nothing of the value stays in it [CL-ENV-012]. */
static void fail(rd_kafka_message_t *message, const void *owner, const char *why, const char *no_letter)
{
    static char none[] = "internal: not decrypted, and no memory to say why";
    char *text = (char *)cl_attach(owner, ERROR_TEXT);
    message->err = RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION;
    message->payload = none;
    if (text != NULL) {
        (void)snprintf(text, ERROR_TEXT, "partition %d, offset %lld: %s%s%s", (int)message->partition,
                       (long long)message->offset, why,
                       no_letter == NULL ? "" : "; no dead letter: ", no_letter == NULL ? "" : no_letter);
        message->payload = text;
    }
    message->len = strlen(message->payload);
}

/* Only this client's own word counts [CL-KAF-024]. `code` NULL: it has none. */
static void set_error_header(rd_kafka_message_t *message, const char *code)
{
    rd_kafka_headers_t *headers = NULL;
    if (cl_kafka()->rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)cl_kafka()->rd_kafka_header_remove(headers, CL_ERROR_HEADER);
    } else if (code != NULL) {
        headers = cl_kafka()->rd_kafka_headers_new(1);
        cl_kafka()->rd_kafka_message_set_headers(message, headers);
    }
    if (code != NULL) {
        (void)cl_kafka()->rd_kafka_header_add(headers, CL_ERROR_HEADER, -1, code, -1);
    }
}

/* Whether a code says that the record itself will never be readable [CL-KAF-020]. */
static bool concerns_record(cl_code code)
{
    static const char *const LAYERS[] = {"parse", "key-id", "decryption"};
    for (size_t i = 0; i < sizeof LAYERS / sizeof LAYERS[0]; i++) {
        if (strcmp(cl_code_layer(code), LAYERS[i]) == 0) {
            return true;
        }
    }
    return code == CL_PLAINTEXT_TOO_LONG || code == CL_PLAINTEXT_REJECTED || code == CL_SCOPE_MISMATCH;
}

static cl_action action_for(const cl_handle *handle, cl_code code)
{
    cl_action action = handle->client->settings.action;
    bool injected = action == CL_ACTION_MARK && code == CL_PLAINTEXT_REJECTED; /* [CL-KAF-025] */
    return concerns_record(code) && !injected ? action : CL_ACTION_FAIL;
}

/* Notes a message that the application is not to get; false without memory. */
static bool set_aside(opening *batch, rd_kafka_message_t *message, const cl_error *error, cl_action action)
{
    cl_letter *letter = calloc(1, sizeof *letter);
    if (letter == NULL) {
        return false;
    }
    letter->message = message;
    letter->error = *error;
    letter->wanted = action == CL_ACTION_DEAD_LETTER;
    *batch->last = letter;
    batch->last = &letter->next;
    return true;
}

static void act(opening *batch, rd_kafka_message_t *message, const cl_error *error)
{
    cl_action action = action_for(batch->handle, error->code);
    if (action == CL_ACTION_MARK) {
        set_error_header(message, cl_code_name(error->code));
        cl_client_acted(batch->handle->client, action);
    } else if (action == CL_ACTION_FAIL || !set_aside(batch, message, error, action)) {
        fail(message, owner_of(batch, message), error->message, NULL);
    }
}

static bool compressed(cl_bytes value)
{
    return value.size >= CL_ENVELOPE_OVERHEAD && cl_has_magic(value) && (value.data[FLAGS_OFFSET] & CL_FLAG_ZSTD) != 0;
}

static cl_code no_memory(cl_error *error)
{
    return cl_fail(error, CL_INTERNAL, "internal: no memory");
}

/* Into memory of its own, which grows until the plaintext fits. */
static cl_code decrypt_compressed(const opening *batch, const rd_kafka_message_t *message, cl_bytes *out,
                                  cl_error *error)
{
    const cl_bytes value = {message->payload, message->len};
    const cl_bytes key = {message->key, message->key_len};
    const char *topic = cl_kafka()->rd_kafka_topic_name(message->rkt);
    cl_code code = CL_BUFFER_TOO_SMALL;
    (void)no_memory(error); /* if nothing is tried */
    for (size_t size = 4 * value.size; code == CL_BUFFER_TOO_SMALL && size <= LARGEST; size *= 4) {
        size = out->size > size ? out->size : size;
        uint8_t *memory = cl_attach(owner_of(batch, message), size);
        code = memory == NULL ? no_memory(error)
                              : cl_decrypt(batch->handle->client, topic, value, &key, memory, size, out, error);
    }
    return code;
}

static cl_code decrypt_in_place(const cl_handle *handle, const rd_kafka_message_t *message, cl_bytes *out,
                                cl_error *error)
{
    const cl_bytes value = {message->payload, message->len};
    const cl_bytes key = {message->key, message->key_len};
    bool envelope = value.size >= CL_ENVELOPE_OVERHEAD;
    uint8_t *in_place = envelope ? (uint8_t *)message->payload + CL_ENVELOPE_HEADER : NULL;
    return cl_decrypt(handle->client, cl_kafka()->rd_kafka_topic_name(message->rkt), value, &key, in_place,
                      envelope ? value.size - CL_ENVELOPE_OVERHEAD : 0, out, error);
}

/* A failure wipes what it could not open, but marks and dead letters need the value as it was read. */
static cl_code decrypt_restorable(const cl_handle *handle, const rd_kafka_message_t *message, cl_bytes *out,
                                  cl_error *error)
{
    void *before = malloc(message->len + 1);
    if (before == NULL) {
        return no_memory(error);
    }
    if (message->len > 0) {
        memcpy(before, message->payload, message->len);
    }
    cl_code code = decrypt_in_place(handle, message, out, error);
    if (code != CL_OK && message->len > 0) {
        memcpy(message->payload, before, message->len);
    }
    free(before);
    return code;
}

static cl_code decrypt_value(const opening *batch, const rd_kafka_message_t *message, cl_bytes *out, cl_error *error)
{
    cl_action action = batch->handle->client->settings.action;
    if (compressed((cl_bytes){message->payload, message->len})) {
        return decrypt_compressed(batch, message, out, error);
    }
    if (message->payload != NULL && (action == CL_ACTION_MARK || action == CL_ACTION_DEAD_LETTER)) {
        return decrypt_restorable(batch->handle, message, out, error);
    }
    return decrypt_in_place(batch->handle, message, out, error);
}

static void open_message(opening *batch, rd_kafka_message_t *message)
{
    cl_bytes out = {NULL, 0};
    cl_error error;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    if (batch->handle->client->settings.action == CL_ACTION_MARK) {
        set_error_header(message, NULL);
    }
    if (decrypt_value(batch, message, &out, &error) == CL_OK) {
        message->payload = (void *)(uintptr_t)out.data;
        message->len = out.size;
    } else {
        act(batch, message, &error);
    }
}

/* Fetches the keys of neighbours of one topic together [CL-KEY-010]. */
static void prefetch(const cl_handle *handle, rd_kafka_message_t **messages, size_t count)
{
    cl_bytes values[BATCH];
    const char *topic = NULL;
    size_t held = 0;
    for (size_t i = 0; i < count; i++) {
        if (messages[i]->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            continue;
        }
        const char *name = cl_kafka()->rd_kafka_topic_name(messages[i]->rkt);
        if (held == BATCH || (topic != NULL && topic != name && strcmp(topic, name) != 0)) {
            cl_prefetch(handle->client, topic, values, held);
            held = 0;
        }
        topic = name;
        values[held++] = (cl_bytes){messages[i]->payload, messages[i]->len};
    }
    if (held > 0) {
        cl_prefetch(handle->client, topic, values, held);
    }
}

/* Ends a letter; whether its message stays with the application after all, as an error. */
static bool settle(const opening *batch, cl_letter *letter)
{
    bool stays = letter->why != NULL;
    if (stays) {
        fail(letter->message, owner_of(batch, letter->message), letter->error.message, letter->why);
    } else {
        cl_client_acted(batch->handle->client, letter->wanted ? CL_ACTION_DEAD_LETTER : CL_ACTION_SKIP);
    }
    free(letter);
    return stays;
}

/* Takes the messages of the letters out of the array. */
static size_t leave_out(opening *batch, rd_kafka_message_t **messages, size_t count,
                        void (*discard)(rd_kafka_message_t *message))
{
    size_t kept = 0;
    cl_letters_send(batch->handle, batch->first);
    for (size_t i = 0; i < count; i++) {
        cl_letter *letter = batch->first;
        bool stays = true;
        if (letter != NULL && letter->message == messages[i]) {
            batch->first = letter->next;
            stays = settle(batch, letter);
        }
        if (stays) {
            messages[kept++] = messages[i];
        } else if (discard != NULL) {
            discard(messages[i]);
        }
    }
    return kept;
}

size_t cl_open(cl_handle *handle, rd_kafka_message_t **messages, size_t count, const void *owner,
               void (*discard)(rd_kafka_message_t *message))
{
    opening batch = {handle, owner, NULL, &batch.first};
    if (handle != NULL && count > 1) {
        prefetch(handle, messages, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (handle == NULL) {
            batch.handle = messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR ? cl_handle_of(messages[i]->rkt) : NULL;
        }
        if (batch.handle != NULL) {
            open_message(&batch, messages[i]);
        } else if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            fail(messages[i], owner_of(&batch, messages[i]),
                 "configuration-invalid: the handle was not made by Cipherlane's functions", NULL);
        }
    }
    return batch.first == NULL ? count : leave_out(&batch, messages, count, discard);
}
