/* The table behind the key cache: entries by what they are about, in the order of their use. Not thread-safe by itself. */
#ifndef CL_ENTRIES_H
#define CL_ENTRIES_H

#include "lease.h"

typedef enum cl_kind { CL_KIND_ENCRYPTION, CL_KIND_DECRYPTION, CL_KIND_PLAINTEXT } cl_kind;

/* What an entry is about. The kid is zero unless the kind is decryption. */
typedef struct cl_subject {
    cl_kind kind;
    cl_kid kid;
    char topic[CL_SCOPE_MAX + 1];
} cl_subject;

typedef struct cl_entry {
    struct cl_entry *chain; /* same bucket */
    struct cl_entry *newer;
    struct cl_entry *older;
    uint64_t hash;
    cl_subject subject;
    cl_lease *lease;     /* NULL: none */
    uint64_t refresh_at; /* of the lease */
    uint64_t retry_at;   /* not to be asked for before */
    cl_error error;      /* of the last attempt; CL_OK: it succeeded, or there was none */
    cl_kid usage_kid;    /* what was encrypted and not yet reported, under this key */
    uint64_t records;
    uint64_t bytes;
    unsigned waiters; /* callers that hold a pointer to it */
    bool asking;      /* a request is in flight */
    bool had_lease;   /* one has ended */
} cl_entry;

typedef struct cl_entries {
    cl_entry **buckets;
    size_t mask;
    size_t count;
    size_t most;
    cl_entry *newest;
    cl_entry *oldest;
} cl_entries;

/* False without memory. `most` is a soft limit: entries in use are never thrown out. */
bool cl_entries_open(cl_entries *entries, size_t most);
void cl_entries_close(cl_entries *entries);

/* The subject of a topic, whose name is valid, and a kid (NULL for none). */
cl_subject cl_subject_of(cl_kind kind, const char *topic, const cl_kid *kid);

/* Finds or adds it and makes it the newest; throws the oldest out if there are too many. NULL without memory. */
cl_entry *cl_entries_use(cl_entries *entries, const cl_subject *subject);

/* Moves what its lease counted to the entry. */
void cl_entry_collect(cl_entry *entry);

/* Ends and drops the lease of an entry, after collecting from it. */
void cl_entry_end(cl_entry *entry);

#endif
