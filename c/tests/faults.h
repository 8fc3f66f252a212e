/*
 * The n-th call of a kind fails: for programs that are linked with --wrap for cl_http_post, malloc, calloc, aligned_alloc, strdup and getrandom,
 * which catches the calls of our own code. The key service gives every topic one key, of the scope "claims".
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>

/* SYSTEM: threads, timers, mappings, and the cipher and zstd calls that have no memory of their own to run out of. */
enum fault { MEMORY, RANDOM, REQUEST, SYSTEM, FAULTS };

/* From now on the n-th call fails, once. */
void faults_arm(enum fault kind, long n);

/* Ends it; whether that call has come. */
bool faults_disarm(enum fault kind);

/* Counts a call; whether this is the one to fail. */
bool faults_hit(enum fault kind);

/*
 * Tells a story with the first call failing, then with the second, and so on, until it comes to an end before the call that would fail: then
 * it must be a good one. The check fails where there are more calls than that.
 */
void faults_in_turn(enum fault kind, long most, bool (*story)(void));

#endif
