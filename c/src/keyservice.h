/*
 * The client of the key service's API: which address, for how long, which failures try the next one. Thread-safe; knows
 * nothing of the envelope and of Kafka.
 */
#ifndef CL_KEYSERVICE_H
#define CL_KEYSERVICE_H

#include "answers.h"
#include "config.h"

typedef struct cl_keyservice cl_keyservice;

/* NULL when libcurl or memory fails, or the PEM files cannot be used. Settings and algorithms must outlive it. */
cl_keyservice *cl_keyservice_new(const cl_settings *settings, const cl_algorithms *algorithms, cl_error *error);
void cl_keyservice_free(cl_keyservice *service);

/* Requests to addresses so far, and those of them that ended in an error. */
void cl_keyservice_numbers(const cl_keyservice *service, uint64_t *requests, uint64_t *failures);

/*
 * Both calls try the addresses in turn [CL-KEY-014] until `deadline` (cl_now()), and store in *sent_at when the request that
 * was answered was sent. The keys in *answer are checked; the caller wipes them.
 */
cl_code cl_keyservice_encryption(cl_keyservice *service, const char *request, uint64_t deadline,
                                 cl_encryption_answer *answer, uint64_t *sent_at, cl_error *error);
cl_code cl_keyservice_decryption(cl_keyservice *service, const char *request, uint64_t deadline,
                                 cl_decryption_answer *answer, uint64_t *sent_at, cl_error *error);

#endif
