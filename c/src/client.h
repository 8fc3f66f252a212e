/* What a cl_client is made of, and the door to it that notices a fork. */
#ifndef CL_CLIENT_H
#define CL_CLIENT_H

#include "config.h"
#include "keys.h"

/* The working parts, of one process. */
typedef struct cl_core {
    const volatile uint8_t *alive; /* a page of its own that is zero in a forked child */
    pid_t process;                 /* where the kernel has no such pages */
    bool wiped_on_fork;
    cl_algorithms algorithms;
    cl_secrets *secrets;
    cl_slots *slots;
    cl_keyservice *service;
    cl_keys *keys;
    struct cl_core *inherited; /* of the parent; its locks may be held for ever, so it is never touched */
} cl_core;

struct cl_client {
    cl_settings settings;
    _Atomic(cl_core *) core;
};

/* The parts of this process; makes new ones in a forked child [CL-ENV-035]. NULL with *error set when that fails. */
cl_core *cl_client_core(cl_client *client, cl_error *error);

#endif
