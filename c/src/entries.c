/* A hash table with chains and a list from newest to oldest. */
#include "entries.h"

#include <stdlib.h>
#include <string.h>

bool cl_entries_open(cl_entries *entries, size_t most)
{
    size_t buckets = 16;
    while (buckets < most) {
        buckets *= 2;
    }
    *entries = (cl_entries){.buckets = calloc(buckets, sizeof(cl_entry *)), .mask = buckets - 1, .most = most};
    return entries->buckets != NULL;
}

void cl_entry_collect(cl_entry *entry)
{
    cl_lease *lease = entry->lease;
    if (memcmp(&entry->usage_kid, &lease->kid, sizeof lease->kid) != 0) {
        entry->usage_kid = lease->kid;
        entry->records = 0;
        entry->bytes = 0;
    }
    entry->records += atomic_exchange_explicit(&lease->records, 0, memory_order_relaxed);
    entry->bytes += atomic_exchange_explicit(&lease->bytes, 0, memory_order_relaxed);
}

void cl_entry_end(cl_entry *entry)
{
    if (entry->lease != NULL) {
        cl_entry_collect(entry);
        entry->had_lease = true;
        cl_lease_end(entry->lease);
        cl_lease_drop(entry->lease);
        entry->lease = NULL;
    }
}

cl_subject cl_subject_of(cl_kind kind, const char *topic, const cl_kid *kid)
{
    cl_subject subject = {.kind = kind};
    memcpy(subject.topic, topic, strnlen(topic, CL_SCOPE_MAX));
    if (kid != NULL) {
        subject.kid = *kid;
    }
    return subject;
}

/* FNV-1a over the whole subject, whose unused bytes are zero. */
static uint64_t hash_of(const cl_subject *subject)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ (uint64_t)subject->kind;
    for (size_t i = 0; i < CL_KID_SIZE; i++) {
        hash = (hash ^ subject->kid.bytes[i]) * UINT64_C(0x100000001B3);
    }
    for (size_t i = 0; subject->topic[i] != '\0'; i++) {
        hash = (hash ^ (uint8_t)subject->topic[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static bool same(const cl_subject *left, const cl_subject *right)
{
    return left->kind == right->kind && memcmp(&left->kid, &right->kid, sizeof left->kid) == 0 &&
           strcmp(left->topic, right->topic) == 0;
}

static cl_entry *find(const cl_entries *entries, const cl_subject *subject, uint64_t hash)
{
    cl_entry *entry = entries->buckets[hash & entries->mask];
    while (entry != NULL && !(entry->hash == hash && same(&entry->subject, subject))) {
        entry = entry->chain;
    }
    return entry;
}

static void unlink_entry(cl_entries *entries, cl_entry *entry)
{
    *(entry->newer == NULL ? &entries->newest : &entry->newer->older) = entry->older;
    *(entry->older == NULL ? &entries->oldest : &entry->older->newer) = entry->newer;
}

static void link_newest(cl_entries *entries, cl_entry *entry)
{
    entry->newer = NULL;
    entry->older = entries->newest;
    *(entries->newest == NULL ? &entries->oldest : &entries->newest->newer) = entry;
    entries->newest = entry;
}

static void discard(cl_entries *entries, cl_entry *entry)
{
    cl_entry **place = &entries->buckets[entry->hash & entries->mask];
    while (*place != entry) {
        place = &(*place)->chain;
    }
    *place = entry->chain;
    unlink_entry(entries, entry);
    cl_entry_end(entry);
    free(entry);
    entries->count--;
}

/* Throws out the oldest that nobody holds [CL-KEY-013]. */
static void make_room(cl_entries *entries)
{
    cl_entry *entry = entries->oldest;
    while (entry != NULL && entries->count >= entries->most) {
        cl_entry *newer = entry->newer;
        if (entry->waiters == 0 && !entry->asking) {
            discard(entries, entry);
        }
        entry = newer;
    }
}

static cl_entry *add(cl_entries *entries, const cl_subject *subject, uint64_t hash)
{
    cl_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return NULL;
    }
    make_room(entries);
    entry->subject = *subject;
    entry->hash = hash;
    entry->chain = entries->buckets[hash & entries->mask];
    entries->buckets[hash & entries->mask] = entry;
    entries->count++;
    link_newest(entries, entry);
    return entry;
}

cl_entry *cl_entries_use(cl_entries *entries, const cl_subject *subject)
{
    uint64_t hash = hash_of(subject);
    cl_entry *entry = find(entries, subject, hash);
    if (entry == NULL) {
        return add(entries, subject, hash);
    }
    unlink_entry(entries, entry);
    link_newest(entries, entry);
    return entry;
}

void cl_entries_close(cl_entries *entries)
{
    cl_entry *entry = entries->newest;
    while (entry != NULL) {
        cl_entry *older = entry->older;
        cl_entry_end(entry);
        free(entry);
        entry = older;
    }
    free((void *)entries->buckets);
    *entries = (cl_entries){0};
}
