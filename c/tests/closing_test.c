/* Closing a client while its key service is silent: at once, not after as long as a request may last. */
#include "check.h"
#include "service.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS "60000" /* of a request */

static atomic_int look_ups;

/* In place of the C library's, for libcurl too: one name has a name server that does not answer. */
__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *port, const struct addrinfo *hints,
                                                       struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name != NULL && strcmp(name, "silent.test") == 0) {
        (void)atomic_fetch_add(&look_ups, 1);
        pause_ms(5000);
        return EAI_AGAIN;
    }
    return real(name, port, hints, found);
}

static void set(cl_config *config, const char *name, const char *value)
{
    CHECK(cl_config_set(config, name, value, NULL) == CL_OK);
}

/* A client whose requests may last a minute. */
static cl_client *patient_client(const char *at, bool renews)
{
    cl_client *client = NULL;
    cl_config *config = make_config(folder, at);
    set(config, "cipherlane.keyservice.connect.timeout.ms", LONG_MS);
    set(config, "cipherlane.keyservice.request.timeout.ms", LONG_MS);
    set(config, "cipherlane.keys.deadline.ms", LONG_MS);
    set(config, "cipherlane.identity.renew", renews ? "true" : "false");
    if (!CHECK(cl_client_new(&client, config, NULL) == CL_OK)) {
        exit(1);
    }
    cl_config_free(config);
    return client;
}

/* Seconds in which a client is closed: one, and more where many programs wait for a processor. */
static double soon(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 && load > 2.0 * (double)sysconf(_SC_NPROCESSORS_ONLN) ? 5.0 : 1.0;
}

static void close_soon(cl_client *client)
{
    double began = seconds();
    cl_client_free(client);
    double took = seconds() - began;
    if (!CHECK(took < soon())) {
        (void)fprintf(stderr, "  closed after %.2f s\n", took);
    }
}

/* Whether there were requests for a topic, within ten seconds. */
static bool asked(const char *topic, long long count)
{
    for (int i = 0; i < 1000 && requests(topic) < count; i++) {
        pause_ms(10);
    }
    return requests(topic) >= count;
}

/* Connects, by the kernel's queue, and nothing more. */
static void silent_socket(void)
{
    char at[64];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (const struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 8) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    (void)snprintf(at, sizeof at, "https://127.0.0.1:%d", ntohs(address.sin_port));
    cl_client *client = patient_client(at, true);
    pause_ms(300); /* by now it waits for the first word of TLS */
    close_soon(client);
    (void)close(listener);
}

/* Takes the request for a certificate and does not answer; another address, which is not asked any more, changes nothing. */
static void silent_service(void)
{
    char both[160];
    (void)snprintf(both, sizeof both, "%s,%s", url, url);
    behave("/v1/certificate", "{\"delay\":30}");
    cl_client *client = patient_client(both, true);
    CHECK(asked("/v1/certificate", 1));
    close_soon(client);
    pause_ms(100);
    CHECK(requests("/v1/certificate") == 1);
}

/* Does not answer the thread that renews keys. */
static void silent_renewal(void)
{
    uint8_t buffer[64];
    cl_bytes plain = {0};
    cl_client *writer = make_client(folder, url, NULL, NULL);
    expect(writer, "renewal", CL_OK);
    cl_client_free(writer);
    const cl_bytes written = {envelope_bytes, CANARY_SIZE + CL_ENVELOPE_OVERHEAD};
    behave("renewal", "{\"refresh_in\":1}");
    cl_client *reader = patient_client(url, false);
    CHECK(cl_decrypt(reader, "renewal", written, NULL, buffer, sizeof buffer, &plain, NULL) == CL_OK);
    long long before = requests("renewal");
    behave("renewal", "{\"delay\":30}");
    CHECK(asked("renewal", before + 1));
    close_soon(reader);
}

/* What was encrypted is still reported, after the request that had to end [CL-KEY-017]. */
static void still_reports(void)
{
    cl_client *client = patient_client(url, false);
    behave("reports", "{\"refresh_in\":1}");
    expect(client, "reports", CL_OK);
    behave("reports", "{\"delay\":30}");
    CHECK(asked("reports", 2));
    behave("reports", "{}");
    expect(client, "reports", CL_OK);
    close_soon(client);
    CHECK(requests("reports") == 3);
}

/* A look-up of a name cannot be broken off, and is not waited for. */
static void silent_names(void)
{
    cl_client *client = patient_client("https://silent.test:8443", true);
    for (int i = 0; i < 1000 && atomic_load(&look_ups) == 0; i++) {
        pause_ms(10);
    }
    CHECK(atomic_load(&look_ups) > 0);
    close_soon(client);
    pause_ms(5500); /* the look-up's own thread ends */
}

int main(void)
{
    begin_service();
    check_case("a socket that says nothing", silent_socket);
    check_case("a key service that does not answer", silent_service);
    check_case("a renewal that is not answered", silent_renewal);
    check_case("CL-KEY-017: reports after an interruption", still_reports);
    check_case("a name server that does not answer", silent_names);
    end_service();
    return check_finish("closing");
}
