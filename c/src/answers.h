/*
 * Requests and answers of the key service (spec/key-service.md): bytes in, structures out, no network. Every key is
 * checked against its kid here, before anybody can use it [CL-KEY-004].
 */
#ifndef CL_ANSWERS_H
#define CL_ANSWERS_H

#include "lease.h"

#define CL_KIDS_PER_CALL 1000U

/* What came back over HTTP. */
typedef struct cl_http_answer {
    long status;
    char content_type[128];
    uint8_t *body;
    size_t size;
    uint64_t sent_at; /* cl_now() when the request was sent: leases begin there [CL-KEY-005] */
} cl_http_answer;

typedef struct cl_terms {
    uint32_t refresh_in; /* seconds */
    uint32_t expires_in;
} cl_terms;

typedef struct cl_encryption_answer {
    cl_mode mode;
    cl_terms terms;
    char scope[CL_SCOPE_MAX + 1]; /* from here on only for CL_MODE_ENCRYPT */
    cl_kid kid;
    uint8_t key[CL_KEY_SIZE];
} cl_encryption_answer;

/* One kid: asked for, then answered. */
typedef struct cl_key_answer {
    cl_kid kid;
    bool answered;
    cl_code code; /* CL_OK, or why there is no key */
    cl_terms terms;
    char scope[CL_SCOPE_MAX + 1];
    uint8_t key[CL_KEY_SIZE];
} cl_key_answer;

typedef struct cl_decryption_answer {
    cl_mode plaintext; /* CL_MODE_ACCEPT or CL_MODE_REJECT */
    cl_terms terms;
    size_t count;
    cl_key_answer *keys; /* the caller's, with the kids asked for; at most CL_KIDS_PER_CALL, all different */
} cl_decryption_answer;

/* A certificate; the texts are not yet checked. */
typedef struct cl_certificate_answer {
    char *certificate; /* PEM, the leaf first; free with free() */
    char *ca;          /* PEM; free with free() */
    cl_terms terms;
} cl_certificate_answer;

/* CL_OK, or the failure that the answer says or is [CL-KEY-003] [CL-ERR-006]. Keys are in `answer`: wipe it. */
cl_code cl_parse_encryption(const cl_algorithms *algorithms, const cl_http_answer *http, cl_encryption_answer *answer,
                            cl_error *error);
cl_code cl_parse_decryption(const cl_algorithms *algorithms, const cl_http_answer *http, cl_decryption_answer *answer,
                            cl_error *error);

cl_code cl_parse_certificate(const cl_http_answer *http, cl_certificate_answer *answer, cl_error *error);

/* Request bodies, NUL-terminated, or NULL without memory; free with free(). `records` 0: no usage to report. */
char *cl_encryption_request(const char *topic, const cl_kid *kid, uint64_t records, uint64_t bytes);
char *cl_certificate_request(const char *csr);
char *cl_decryption_request(const char *topic, const cl_key_answer *keys, size_t count);

#endif
