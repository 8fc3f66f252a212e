/*
 * The inside of the key cache, shared by keys.c (callers), fetch.c (requests and what becomes of their answers) and refresher.c (the
 * thread). Every function here is called with the mutex held.
 */
#ifndef CL_FETCH_H
#define CL_FETCH_H

#include "entries.h"
#include "keys.h"

#include <pthread.h>

struct cl_keys {
    cl_keys_parts parts;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* some request has ended */
    cl_entries entries;
    pthread_t thread;
    int timer; /* wakes the thread */
    bool stopping;
};

/* Whether an entry holds a lease that may be used now; drops one that has ended. */
bool cl_entry_held(cl_entry *entry, uint64_t now);

/* Requests. They mark the entries as asked for, release the mutex meanwhile, and leave lease or error in each entry. */
void cl_fetch_encryption(cl_keys *keys, cl_entry *entry, uint64_t deadline);

/* `entries` are of kind decryption, of one topic; `plaintext` is the topic's entry of that kind if it was asked for, or NULL. */
void cl_fetch_decryption(cl_keys *keys, cl_entry *const *entries, size_t count, cl_entry *plaintext, uint64_t deadline);

/* Tells the key service what was encrypted and not yet reported [CL-KEY-017]. Nobody else uses the cache any more. */
void cl_report_usage(cl_keys *keys, uint64_t deadline);

/* Starts the thread; false when there is none to be had. */
bool cl_refresher_start(cl_keys *keys);
void cl_refresher_stop(cl_keys *keys); /* without the mutex */

/* Has the thread look at all entries now. */
void cl_refresher_wake(const cl_keys *keys);

#endif
