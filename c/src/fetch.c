/* Requests to the key service, and what becomes of their answers. */
#include "fetch.h"

#include "clock.h"
#include "error.h"
#include "topics.h"

#include <openssl/crypto.h>
#include <stdlib.h>

bool cl_entry_held(cl_entry *entry, uint64_t now)
{
    if (entry->lease != NULL && !cl_lease_alive(entry->lease, now)) {
        cl_entry_end(entry);
    }
    return entry->lease != NULL;
}

/* A renewal that was refused ends the lease at once [CL-KEY-008]; a failure to ask does not. */
static bool is_refusal(cl_code code)
{
    switch (code) {
    case CL_TOPIC_UNKNOWN:
    case CL_TOPIC_FORBIDDEN:
    case CL_NOT_AUTHORIZED:
    case CL_SCOPE_MISMATCH:
    case CL_KEY_UNKNOWN:
    case CL_KEY_DESTROYED:
    case CL_UNAUTHENTICATED:
        return true;
    default:
        return false;
    }
}

/* The backoff with its jitter of 20 % [CL-KEY-012]; the clock's low digits are random enough to spread clients. */
static uint64_t backoff(const cl_keys *keys, uint64_t now)
{
    uint64_t whole = keys->parts.settings->retry_backoff_ms * CL_MILLISECOND;
    return whole / 10 * 8 + whole / 1000 * (now % 401);
}

static void refuse(const cl_keys *keys, cl_entry *entry, const cl_error *error)
{
    uint64_t now = cl_now();
    entry->error = *error;
    entry->retry_at = now + backoff(keys, now);
    if (is_refusal(error->code)) {
        cl_entry_end(entry);
    }
}

/* Prolongs the lease, or begins another and ends the old one with its sessions [CL-ENV-034]. */
static void install(const cl_keys *keys, cl_entry *entry, const cl_grant *grant, const cl_terms *terms,
                    uint64_t sent_at)
{
    uint64_t expires_at = sent_at + terms->expires_in * CL_SECOND;
    if (cl_entry_held(entry, cl_now()) && cl_lease_same(entry->lease, grant)) {
        atomic_store_explicit(&entry->lease->expires_at, expires_at, memory_order_release);
        atomic_store_explicit(&entry->lease->used, false, memory_order_relaxed);
    } else {
        cl_entry_end(entry);
        entry->lease = cl_lease_new(keys->parts.secrets, grant, expires_at);
    }
    entry->refresh_at = sent_at + terms->refresh_in * CL_SECOND;
    entry->error.code = CL_OK;
    if (entry->lease == NULL) {
        cl_error error;
        (void)cl_no_memory(&error);
        refuse(keys, entry, &error);
    }
}

static void begin(cl_entry *entry)
{
    entry->asking = true;
    entry->waiters++;
}

static void end(cl_entry *entry)
{
    entry->asking = false;
    entry->waiters--;
}

/* Tells the waiting callers, and the thread that there are new dates to keep. */
static void announce(cl_keys *keys)
{
    (void)pthread_cond_broadcast(&keys->changed);
    cl_refresher_wake(keys);
}

static cl_code ask_encryption(const cl_keys *keys, const char *topic, const cl_entry *usage, uint64_t deadline,
                              cl_encryption_answer *answer, uint64_t *sent_at, cl_error *error)
{
    char *request = cl_encryption_request(topic, &usage->usage_kid, usage->records, usage->bytes);
    if (request == NULL) {
        return cl_no_memory(error);
    }
    cl_code code = cl_keyservice_encryption(keys->parts.service, request, deadline, answer, sent_at, error);
    free(request);
    return code;
}

/* The service's answer, and what the client's own settings add for the topic. */
static cl_grant writing_grant(const cl_settings *settings, const char *topic, const cl_encryption_answer *answer)
{
    bool compress = cl_topics_have(settings->compression_topics, topic);
    return (cl_grant){.mode = answer->mode,
                      .kid = answer->kid,
                      .key = answer->mode == CL_MODE_ENCRYPT ? answer->key : NULL,
                      .topic = topic,
                      .scope = answer->scope,
                      .bind = cl_topics_have(settings->record_key_topics, topic),
                      .compress_from = compress ? settings->compression_min : CL_NO_COMPRESSION};
}

void cl_fetch_encryption(cl_keys *keys, cl_entry *entry, uint64_t deadline)
{
    cl_encryption_answer answer = {0};
    cl_error error = {0};
    uint64_t sent_at = 0;
    if (entry->lease != NULL) {
        cl_entry_collect(entry);
    }
    const cl_entry reported = *entry;
    begin(entry);
    (void)pthread_mutex_unlock(&keys->mutex);
    cl_code code = ask_encryption(keys, reported.subject.topic, &reported, deadline, &answer, &sent_at, &error);
    (void)pthread_mutex_lock(&keys->mutex);
    if (code == CL_OK) {
        entry->records -= reported.records;
        entry->bytes -= reported.bytes;
        const cl_grant grant = writing_grant(keys->parts.settings, entry->subject.topic, &answer);
        install(keys, entry, &grant, &answer.terms, sent_at);
    } else {
        refuse(keys, entry, &error);
    }
    OPENSSL_cleanse(&answer, sizeof answer);
    end(entry);
    announce(keys);
}

void cl_report_usage(cl_keys *keys, uint64_t deadline)
{
    for (cl_entry *entry = keys->entries.newest; entry != NULL; entry = entry->older) {
        cl_encryption_answer answer = {0};
        uint64_t sent_at = 0;
        if (entry->lease != NULL) {
            cl_entry_collect(entry);
        }
        if (entry->records > 0 && cl_now() < deadline) {
            (void)ask_encryption(keys, entry->subject.topic, entry, deadline, &answer, &sent_at, NULL);
            OPENSSL_cleanse(&answer, sizeof answer);
        }
    }
}

static void install_key(const cl_keys *keys, cl_entry *entry, const cl_key_answer *answer, uint64_t sent_at)
{
    if (answer->code == CL_OK) {
        const cl_grant grant = {.mode = CL_MODE_ENCRYPT,
                                .kid = answer->kid,
                                .key = answer->key,
                                .topic = entry->subject.topic,
                                .scope = answer->scope};
        install(keys, entry, &grant, &answer->terms, sent_at);
        return;
    }
    cl_error error;
    (void)cl_fail(&error, answer->code, "%s: the key service has no usable key of this id for this topic",
                  cl_code_name(answer->code));
    refuse(keys, entry, &error);
}

/* How plaintext is met comes with every answer, asked for or not. */
static void install_plaintext(cl_keys *keys, const char *topic, const cl_decryption_answer *answer, uint64_t sent_at)
{
    const cl_subject subject = cl_subject_of(CL_KIND_PLAINTEXT, topic, NULL);
    cl_entry *entry = cl_entries_use(&keys->entries, &subject);
    if (entry != NULL) {
        const cl_grant grant = {.mode = answer->plaintext, .topic = topic, .scope = ""};
        install(keys, entry, &grant, &answer->terms, sent_at);
    }
}

/* The answers in the order of the entries; NULL without memory. */
static cl_key_answer *questions(cl_entry *const *entries, size_t count)
{
    cl_key_answer *keys = calloc(count + 1, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < count; i++) {
        keys[i].kid = entries[i]->subject.kid;
    }
    return keys;
}

static cl_code ask_decryption(const cl_keys *keys, const char *topic, cl_decryption_answer *answer, uint64_t deadline,
                              uint64_t *sent_at, cl_error *error)
{
    char *request = answer->keys == NULL ? NULL : cl_decryption_request(topic, answer->keys, answer->count);
    if (request == NULL) {
        return cl_no_memory(error);
    }
    cl_code code = cl_keyservice_decryption(keys->parts.service, request, deadline, answer, sent_at, error);
    free(request);
    return code;
}

static void store_keys(cl_keys *keys, cl_entry *const *entries, const cl_decryption_answer *answer, cl_code code,
                       uint64_t sent_at, const cl_error *error)
{
    for (size_t i = 0; i < answer->count; i++) {
        if (code == CL_OK) {
            install_key(keys, entries[i], &answer->keys[i], sent_at);
        } else {
            refuse(keys, entries[i], error);
        }
        end(entries[i]);
    }
}

void cl_fetch_decryption(cl_keys *keys, cl_entry *const *entries, size_t count, cl_entry *plaintext, uint64_t deadline)
{
    cl_decryption_answer answer = {.count = count, .keys = questions(entries, count)};
    cl_error error = {0};
    uint64_t sent_at = 0;
    const cl_subject subject = plaintext != NULL ? plaintext->subject : entries[0]->subject;
    for (size_t i = 0; i < count; i++) {
        begin(entries[i]);
    }
    if (plaintext != NULL) {
        begin(plaintext);
    }
    (void)pthread_mutex_unlock(&keys->mutex);
    cl_code code = ask_decryption(keys, subject.topic, &answer, deadline, &sent_at, &error);
    (void)pthread_mutex_lock(&keys->mutex);
    if (code == CL_OK) {
        install_plaintext(keys, subject.topic, &answer, sent_at);
    }
    store_keys(keys, entries, &answer, code, sent_at, &error);
    if (plaintext != NULL) {
        if (code != CL_OK) {
            refuse(keys, plaintext, &error);
        }
        end(plaintext);
    }
    if (answer.keys != NULL) {
        OPENSSL_cleanse(answer.keys, count * sizeof *answer.keys);
        free(answer.keys);
    }
    announce(keys);
}
