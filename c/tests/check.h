/* A tiny test runner: named cases, checks that any thread may make, JUnit XML in the folder that CL_RESULTS names. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>

/* Notes a failure of the running case if `good` is false, and gives `good` back. */
bool check_that(bool good, const char *what, const char *file, int line);
#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)

/* Runs one case. */
void check_case(const char *name, void (*body)(void));
void check_case_with(const char *name, void (*body)(void *), void *context);

/* Writes TEST-<suite>.xml; prints the count; the exit code of the program: 0 only if cases ran and none failed. */
int check_finish(const char *suite);

#endif
