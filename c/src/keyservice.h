/*
 * The client of the key service's API: which address, for how long, which failures try the next one. Thread-safe; knows
 * nothing of the envelope and of Kafka.
 */
#ifndef CL_KEYSERVICE_H
#define CL_KEYSERVICE_H

#include "answers.h"
#include "pem.h"

typedef struct cl_keyservice cl_keyservice;

/*
 * Where the certificate for a call comes from. `give` stores a reference in *pem, which the call drops, after waiting for at most
 * `timeout_ms`; or says why there is none. Thread-safe.
 */
typedef struct cl_pem_source {
    cl_code (*give)(void *context, uint32_t timeout_ms, cl_pem **pem, cl_error *error);
    void *context;
} cl_pem_source;

/* NULL when libcurl or memory fails. Settings, algorithms (not needed for certificates) and what the source needs must outlive it. */
cl_keyservice *cl_keyservice_new(const cl_settings *settings, const cl_algorithms *algorithms, cl_pem_source source,
                                 cl_error *error);
void cl_keyservice_free(cl_keyservice *service);

/* Ends the calls in flight, in other threads, at once, and until resumed refuses new ones: CL_KEY_SERVICE_UNAVAILABLE. */
void cl_keyservice_interrupt(cl_keyservice *service);
void cl_keyservice_resume(cl_keyservice *service);

/* Requests to addresses so far, and those of them that ended in an error. */
void cl_keyservice_numbers(const cl_keyservice *service, uint64_t *requests, uint64_t *failures);

/*
 * The calls try the addresses in turn [CL-KEY-014] until `deadline` (cl_now()), and store in *sent_at when the request that
 * was answered was sent. The keys in *answer are checked; the caller wipes them.
 */
cl_code cl_keyservice_encryption(cl_keyservice *service, const char *request, uint64_t deadline,
                                 cl_encryption_answer *answer, uint64_t *sent_at, cl_error *error);
cl_code cl_keyservice_decryption(cl_keyservice *service, const char *request, uint64_t deadline,
                                 cl_decryption_answer *answer, uint64_t *sent_at, cl_error *error);

/* Stores also whether an address answered, be it with a refusal: a token is then not sent again [CL-IDN-035]. */
cl_code cl_keyservice_certificate(cl_keyservice *service, const char *request, uint64_t deadline,
                                  cl_certificate_answer *answer, uint64_t *sent_at, bool *answered, cl_error *error);

#endif
