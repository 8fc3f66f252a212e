/* Names as settings speak of them: globs, lists of globs, the name of a dead-letter topic. All functions are pure. */
#ifndef CL_TOPICS_H
#define CL_TOPICS_H

#include "envelope.h"

/* Whether a list of names and globs, comma-separated, can be used; an empty one can. */
bool cl_topics_valid(const char *list);

/* Whether a valid list has the topic: * stands for any run of characters, ? for one, over the whole name (spec/policy.md). */
bool cl_topics_have(const char *list, const char *topic);

/* The same for SPIFFE ids: wildcards do not match '/', and a pattern may end in / and two stars: one or more segments of the path. */
bool cl_ids_valid(const char *list);
bool cl_ids_have(const char *list, const char *id);

/* Writes the dead-letter topic of `topic`, in whose name {topic} stands for it; false when that is no valid topic name. */
bool cl_dead_letter_topic(const char *pattern, const char *topic, char out[CL_SCOPE_MAX + 1]);

#endif
