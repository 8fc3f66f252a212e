/* What a cl_client is made of, and the door to it that notices a fork. */
#ifndef CL_CLIENT_H
#define CL_CLIENT_H

#include "credentials.h"
#include "keys.h"

/* The working parts, of one process. */
typedef struct cl_core {
    const volatile uint8_t *alive; /* a page of its own that is zero in a forked child */
    pid_t process;                 /* where the kernel has no such pages */
    bool wiped_on_fork;
    cl_algorithms algorithms;
    cl_secrets *secrets;
    cl_slots *slots;
    cl_credentials *credentials;
    cl_keyservice *service;
    cl_keys *keys;
    struct cl_core *inherited; /* of the parent; its locks may be held for ever, so it is never touched */
} cl_core;

/* What is counted off the hot path; the rest is counted where it happens. */
typedef struct cl_counters {
    _Atomic uint64_t failures[CL_CODES];
    _Atomic uint64_t accepted;
    _Atomic uint64_t skipped;
    _Atomic uint64_t dead_lettered;
    _Atomic uint64_t marked;
} cl_counters;

struct cl_client {
    cl_settings settings;
    cl_counters counters;
    _Atomic(cl_core *) core;
};

/* Counts one. */
void cl_client_failed(cl_client *client, cl_code code);
void cl_client_accepted(cl_client *client);

/* Counts what became of a record under a failure action other than `fail`. */
void cl_client_acted(cl_client *client, cl_action action);

/* The parts of this process; makes new ones in a forked child [CL-ENV-035]. NULL with *error set when that fails. */
cl_core *cl_client_core(cl_client *client, cl_error *error);

#endif
