/*
 * Cipherlane for C: encrypts and decrypts Apache Kafka record values in the client.
 *
 * This header is the whole documentation of libcipherlane. What the bytes are and why stands in spec/ of the
 * repository; ids such as [CL-ENV-001] are rules there. The functions for librdkafka are in <cipherlane/rdkafka.h>.
 *
 *     cl_config *config = cl_config_new();
 *     cl_config_set(config, "cipherlane.keyservice.urls", "https://keys.example:8443", &error);
 *     ...                                              // or cl_config_load(config, "client.properties", &error)
 *     cl_client *client;
 *     if (cl_client_new(&client, config, &error) != CL_OK) fail(error.message);
 *     cl_config_free(config);
 *
 *     uint8_t buffer[4096 + CL_ENVELOPE_OVERHEAD];
 *     cl_bytes envelope;
 *     if (cl_encrypt(client, "claims", (cl_bytes){value, size}, NULL, buffer, sizeof buffer, &envelope, &error) != CL_OK)
 *         fail(error.message);                         // nothing may be sent
 *
 * Ownership: every buffer belongs to the caller; handles are freed with their own function, which accepts NULL.
 * Threads: a cl_client may be used by any number of threads at once; encrypting and decrypting with a key that is
 *   already held takes no lock. A cl_config and a cl_error belong to one thread at a time.
 * Fork: a client made before fork() works in the child: the child starts sessions, connections, a refresh thread and
 *   a key cache of its own on first use [CL-ENV-035], and leaves what it inherited untouched apart from wiping the keys.
 * Blocking: a call waits for the key service only when it holds no usable key, and then no longer than
 *   cipherlane.keys.deadline.ms [CL-KEY-011]. Leases are renewed by a thread that the client owns.
 * Errors: every failing function returns the code and, if `error` is not NULL, fills it. No error means "send the
 *   plaintext" [CL-ERR-003]; no message holds a key or bytes of a record [CL-ERR-001].
 */
#ifndef CIPHERLANE_CIPHERLANE_H
#define CIPHERLANE_CIPHERLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CL_API __attribute__((visibility("default")))
#else
#define CL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* By how much an envelope is longer than what was encrypted, in bytes. */
#define CL_ENVELOPE_OVERHEAD 60U
/* Where the ciphertext starts in an envelope; see cl_decrypt for decrypting in place. */
#define CL_ENVELOPE_HEADER 44U
/* Size of cl_error.message, terminating NUL included. */
#define CL_ERROR_MESSAGE 512U

/* What went wrong: the codes of spec/errors.md, in its order. CL_OK is 0. */
typedef enum cl_code {
    CL_OK = 0,
    CL_CONFIGURATION_INVALID,
    CL_VALUE_TYPE,
    CL_TOPIC_INVALID,
    CL_PLAINTEXT_TOO_LONG,
    CL_AMBIGUOUS_PLAINTEXT,
    CL_ENVELOPE_TOO_SHORT,
    CL_UNSUPPORTED_VERSION,
    CL_UNSUPPORTED_FLAGS,
    CL_RECORD_KEY_UNAVAILABLE,
    CL_TOPIC_UNKNOWN,
    CL_TOPIC_FORBIDDEN,
    CL_NOT_AUTHORIZED,
    CL_SCOPE_MISMATCH,
    CL_PLAINTEXT_REJECTED,
    CL_KEY_UNKNOWN,
    CL_KEY_DESTROYED,
    CL_KEY_MALFORMED,
    CL_KEY_ID_MISMATCH,
    CL_AUTHENTICATION_FAILED,
    CL_DECOMPRESSION_FAILED,
    CL_UNAUTHENTICATED,
    CL_REQUEST_INVALID,
    CL_REQUEST_TOO_LARGE,
    CL_NOT_FOUND,
    CL_KEY_SERVICE_UNAVAILABLE,
    CL_KEY_SERVICE_BAD_ANSWER,
    CL_KEY_SERVICE_INTERNAL, /* "internal" of the key service */
    CL_AUDIT_UNAVAILABLE,
    CL_LEASE_EXPIRED,
    CL_CLOSED,
    CL_INTERNAL,         /* "internal" of this library: the cipher, memory, random numbers */
    CL_BUFFER_TOO_SMALL, /* of this library only: the caller's buffer; nothing was written */
    CL_CODES             /* how many there are */
} cl_code;

/* A failure: its code and one line for a person, UTF-8, NUL-terminated. */
typedef struct cl_error {
    cl_code code;
    char message[CL_ERROR_MESSAGE];
} cl_error;

/* Bytes that belong to somebody else. data == NULL is a null value (a tombstone), which is not an empty one. */
typedef struct cl_bytes {
    const uint8_t *data;
    size_t size;
} cl_bytes;

/* What a client counted since it was made; in a forked child some of it since its first use there (spec/kafka.md, "Numbers"). */
typedef struct cl_numbers {
    uint64_t records_encrypted;
    uint64_t records_decrypted;
    uint64_t failures[CL_CODES]; /* by code: records that ended in an error */
    uint64_t skipped;            /* by failure action, in the librdkafka drop-in */
    uint64_t dead_lettered;
    uint64_t marked;
    uint64_t plaintext_accepted; /* read in the clear because the policy accepts plaintext */
    uint64_t key_requests;       /* calls to an address of the key service */
    uint64_t key_request_failures;
    uint64_t keys_cached;        /* data keys held now */
    uint64_t lease_seconds_left; /* until the first lease of them ends; 0 without keys */
    uint64_t
        certificate_seconds_left; /* with cipherlane.identity.renew: until the certificate in use ends; 0 without one */
} cl_numbers;

typedef struct cl_config cl_config;
typedef struct cl_client cl_client;

/* The code as spec/errors.md writes it, such as "topic-unknown"; "ok" for CL_OK, "internal" for a number that is none. */
CL_API const char *cl_code_name(cl_code code);

/* The layer of a code as spec/errors.md writes it, such as "policy". */
CL_API const char *cl_code_layer(cl_code code);

/* Whether the same call may succeed later without anybody changing anything [CL-ERR-004]. */
CL_API bool cl_code_retriable(cl_code code);

/* An empty configuration, or NULL when there is no memory. */
CL_API cl_config *cl_config_new(void);

/*
 * Sets one setting of spec/configuration.md by its full name. CL_CONFIGURATION_INVALID: an unknown name (the message
 * has the nearest known one) [CL-CFG-001], or a value that is malformed or out of range [CL-CFG-002].
 */
CL_API cl_code cl_config_set(cl_config *config, const char *name, const char *value, cl_error *error);

/*
 * Sets every setting in a file of `name=value` lines; blank lines and lines that start with # do not count. At most
 * 64 KiB. The errors of cl_config_set, with the line.
 */
CL_API cl_code cl_config_load(cl_config *config, const char *path, cl_error *error);

CL_API void cl_config_free(cl_config *config);

/*
 * Makes a client and stores it in *client (NULL on failure). The configuration is copied. Does not call the key
 * service. CL_CONFIGURATION_INVALID: a required setting is missing, or CA, certificate or key cannot be used
 * [CL-CFG-002]. CL_INTERNAL: no memory, no thread.
 */
CL_API cl_code cl_client_new(cl_client **client, const cl_config *config, cl_error *error);

/*
 * Tells the key service what was encrypted since the last report, waiting at most a second [CL-KEY-017], then wipes all keys and frees the
 * client. No other thread may be using it. NULL is allowed.
 */
CL_API void cl_client_free(cl_client *client);

/* Stores in *numbers what the client counts. Thread-safe; takes the key cache's lock for a moment. CL_INTERNAL: no memory, after a fork. */
CL_API cl_code cl_client_numbers(cl_client *client, cl_numbers *numbers, cl_error *error);

/*
 * Encrypts `value` for `topic`.
 *
 * `record_key` is the record's key (NULL: not known; data == NULL: the key is null); in the topics of cipherlane.record.key.topics it is
 * bound, and CL_RECORD_KEY_UNAVAILABLE refuses what comes without [CL-KAF-030] [CL-KAF-031]. In the topics of
 * cipherlane.compression.topics the value is compressed first if that makes it shorter [CL-ENV-045].
 * *out is then what may be sent: in a topic of mode `encrypt` the envelope, in `buffer`; in a topic of mode `clear` the
 * value itself [CL-ENV-041]; for a null value null [CL-ENV-040] (unless the topic is forbidden). On an error *out is null
 * and nothing may be sent [CL-ENV-044]. `buffer` holds `capacity` bytes, value.size + CL_ENVELOPE_OVERHEAD is enough, and must not overlap the
 * value. Allocates nothing when the thread has encrypted for the topic before.
 * A failed call may have written to `buffer`; no plaintext stays there.
 *
 * Errors: of the layers input, policy, key-service, key-id, CL_RECORD_KEY_UNAVAILABLE, and CL_BUFFER_TOO_SMALL.
 */
CL_API cl_code cl_encrypt(cl_client *client, const char *topic, cl_bytes value, const cl_bytes *record_key,
                          uint8_t *buffer, size_t capacity, cl_bytes *out, cl_error *error);

/*
 * Decrypts `value`, read from `topic`.
 *
 * `record_key` is the record's key (NULL: not known; data == NULL: the key is null); it is needed for envelopes that
 * bind it. *out is then the plaintext, in `buffer`; or the value itself when it is not an envelope and the policy
 * accepts plaintext [CL-ENV-002]; or null for a null value [CL-ENV-001]. On an error *out is null and must not be taken
 * for a tombstone [CL-ENV-012]; `buffer` is then wiped.
 *
 * `capacity` of value.size - CL_ENVELOPE_OVERHEAD is enough for a value that was not compressed. A compressed one may
 * need more: CL_BUFFER_TOO_SMALL then stores in out->size what is known to be needed (out->data is NULL).
 * `buffer` is apart from the value, or exactly value.data + CL_ENVELOPE_HEADER: then the envelope is replaced in place.
 *
 * Errors: of the layers parse, policy, key-id, decryption, key-service, input, and CL_BUFFER_TOO_SMALL.
 */
CL_API cl_code cl_decrypt(cl_client *client, const char *topic, cl_bytes value, const cl_bytes *record_key,
                          uint8_t *buffer, size_t capacity, cl_bytes *out, cl_error *error);

/*
 * Fetches the keys that `count` values of one topic need and that are not held yet, together, at most 1,000 in a call
 * to the key service [CL-KEY-010]. Call it once for a batch before cl_decrypt. What could not be fetched is told by
 * cl_decrypt, record by record; this function has no error of its own.
 */
CL_API void cl_prefetch(cl_client *client, const char *topic, const cl_bytes *values, size_t count);

/* Version of the library, such as "0.1.0". */
CL_API const char *cl_version(void);

#ifdef __cplusplus
}
#endif

#endif
