/* The runner: results in memory, XML at the end. */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct result {
    char name[128];
    char failure[256]; /* of the first check that failed; empty: passed */
    double seconds;
} result;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static result *results;
static size_t count;

bool check_that(bool good, const char *what, const char *file, int line)
{
    if (!good) {
        (void)pthread_mutex_lock(&mutex);
        result *running = &results[count - 1];
        if (running->failure[0] == '\0') {
            (void)snprintf(running->failure, sizeof running->failure, "%s:%d: %s", file, line, what);
            (void)fprintf(stderr, "FAILED %s: %s\n", running->name, running->failure);
        }
        (void)pthread_mutex_unlock(&mutex);
    }
    return good;
}

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void check_case_with(const char *name, void (*body)(void *), void *context)
{
    result *grown = realloc(results, (count + 1) * sizeof *results);
    if (grown == NULL) {
        abort();
    }
    results = grown;
    results[count] = (result){.seconds = now()};
    (void)snprintf(results[count].name, sizeof results[count].name, "%s", name);
    count++;
    body(context);
    results[count - 1].seconds = now() - results[count - 1].seconds;
}

static void call(void *body)
{
    void (*function)(void) = NULL;
    memcpy(&function, body, sizeof function);
    function();
}

void check_case(const char *name, void (*body)(void))
{
    check_case_with(name, call, &body);
}

static void escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("<>&\"'", *text) != NULL || *text < ' ') {
            (void)fprintf(file, "&#%d;", *text);
        } else {
            (void)fputc(*text, file);
        }
    }
}

static void write_xml(FILE *file, const char *suite, size_t failed)
{
    (void)fprintf(
        file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\">\n",
        suite, count, failed);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(file, "<testcase classname=\"c.%s\" name=\"", suite);
        escaped(file, results[i].name);
        (void)fprintf(file, "\" time=\"%.3f\">", results[i].seconds);
        if (results[i].failure[0] != '\0') {
            (void)fputs("<failure message=\"", file);
            escaped(file, results[i].failure);
            (void)fputs("\"/>", file);
        }
        (void)fputs("</testcase>\n", file);
    }
    (void)fputs("</testsuite>\n", file);
}

int check_finish(const char *suite)
{
    const char *folder = getenv("CL_RESULTS");
    const char *full = getenv("CL_SUITE"); /* names the build too, so that runs do not overwrite each other */
    suite = full == NULL ? suite : full;
    char path[512];
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        failed += results[i].failure[0] == '\0' ? 0U : 1U;
    }
    (void)snprintf(path, sizeof path, "%s/TEST-%s.xml", folder == NULL ? "." : folder, suite);
    FILE *file = folder == NULL ? NULL : fopen(path, "w");
    if (file != NULL) {
        write_xml(file, suite, failed);
        (void)fclose(file);
    }
    (void)printf("%s: %zu passed, %zu failed\n", suite, count - failed, failed);
    bool good = failed == 0 && count > 0 && (folder == NULL || file != NULL);
    free(results);
    return good ? 0 : 1;
}
