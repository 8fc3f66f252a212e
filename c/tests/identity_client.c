/*
 * A program with clients that renew their certificate, told what to do by lines on standard input: `open`, `encrypt`, `fork` (encrypt in a child), `left`
 * (seconds of the certificate), `close`. Answers each with a line: `ok`, a number, or what went wrong. Usage: identity_client SETTINGS_FILE.
 */
#include <cipherlane/cipherlane.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS 100U

static cl_client *clients[CLIENTS];
static size_t count;

static void open_client(const char *path)
{
    cl_error error = {0};
    cl_config *config = cl_config_new();
    bool made = count < CLIENTS && cl_config_load(config, path, &error) == CL_OK &&
                cl_client_new(&clients[count], config, &error) == CL_OK;
    cl_config_free(config);
    count += made ? 1 : 0;
    (void)printf("%s\n", made ? "ok" : error.message);
}

/* By the client that was opened last. */
static bool encrypt(cl_error *error)
{
    uint8_t buffer[128];
    cl_bytes out;
    const cl_bytes value = {(const uint8_t *)"canary-identity", 15};
    return cl_encrypt(clients[count - 1], "enc.identity", value, NULL, buffer, sizeof buffer, &out, error) == CL_OK;
}

static void say(bool good, const cl_error *error)
{
    (void)printf("%s\n", good ? "ok" : error->message);
}

static void in_child(void)
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        cl_error error = {0};
        say(encrypt(&error), &error);
        (void)fflush(stdout);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

static void obey(const char *line, const char *settings)
{
    cl_error error = {0};
    cl_numbers numbers = {0};
    if (strcmp(line, "open\n") == 0) {
        open_client(settings);
    } else if (strcmp(line, "encrypt\n") == 0) {
        say(encrypt(&error), &error);
    } else if (strcmp(line, "fork\n") == 0) {
        in_child();
    } else if (strcmp(line, "left\n") == 0) {
        (void)cl_client_numbers(clients[count - 1], &numbers, &error);
        (void)printf("%llu\n", (unsigned long long)numbers.certificate_seconds_left);
    } else {
        cl_client_free(clients[--count]);
        (void)printf("ok\n");
    }
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[64];
    while (argc == 2 && fgets(line, sizeof line, stdin) != NULL) {
        obey(line, argv[1]);
    }
    while (count > 0) {
        cl_client_free(clients[--count]);
    }
    return 0;
}
