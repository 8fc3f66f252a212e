/* Making and unmaking a client, and what happens to it in fork(). */
#include "client.h"

#include "error.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096U

/* The page is zero in a child, without a system call for every record. */
static bool watch_fork(cl_core *core)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    core->process = getpid();
    core->wiped_on_fork = madvise(page, PAGE, MADV_WIPEONFORK) == 0;
    *(uint8_t *)page = 1;
    core->alive = page;
    return true;
}

static bool is_mine(const cl_core *core)
{
    return *core->alive == 1 && (core->wiped_on_fork || core->process == getpid());
}

static void destroy_core(cl_core *core)
{
    cl_keys_free(core->keys);
    cl_slots_free(core->slots);
    cl_keyservice_free(core->service);
    cl_credentials_free(core->credentials);
    cl_secrets_free(core->secrets);
    cl_algorithms_close(&core->algorithms);
    if (core->alive != NULL) {
        (void)munmap((void *)(uintptr_t)core->alive, PAGE);
    }
    free(core);
}

static cl_code give_pem(void *context, uint32_t timeout_ms, cl_pem **pem, cl_error *error)
{
    return cl_credentials_take(context, timeout_ms, pem, error);
}

static bool open_parts(cl_core *core, const cl_settings *settings, cl_error *error)
{
    if (!watch_fork(core) || cl_algorithms_open(&core->algorithms) != CL_OK) {
        return false;
    }
    core->secrets = cl_secrets_new();
    core->slots = cl_slots_new(&core->algorithms);
    core->credentials = cl_credentials_new(settings, error);
    const cl_pem_source source = {give_pem, core->credentials};
    core->service = core->credentials == NULL ? NULL : cl_keyservice_new(settings, &core->algorithms, source, error);
    if (core->secrets == NULL || core->slots == NULL || core->service == NULL) {
        return false;
    }
    const cl_keys_parts parts = {settings, core->service, core->secrets, core->slots};
    core->keys = cl_keys_new(&parts);
    return core->keys != NULL;
}

static cl_core *new_core(const cl_settings *settings, cl_error *error)
{
    cl_core *core = calloc(1, sizeof *core);
    (void)cl_fail(error, CL_INTERNAL, "internal: no memory, or no thread");
    if (core != NULL && !open_parts(core, settings, error)) {
        destroy_core(core);
        return NULL;
    }
    return core;
}

/* In a child: the first thread that comes here replaces the parent's parts, whose keys it wipes from its memory. */
static cl_core *replace_core(cl_client *client, cl_core *inherited, cl_error *error)
{
    cl_core *fresh = new_core(&client->settings, error);
    if (fresh == NULL) {
        return NULL;
    }
    cl_core *current = inherited;
    fresh->inherited = inherited;
    if (atomic_compare_exchange_strong(&client->core, &current, fresh)) {
        cl_secrets_wipe(inherited->secrets);
        return fresh;
    }
    destroy_core(fresh);
    return current;
}

cl_core *cl_client_core(cl_client *client, cl_error *error)
{
    cl_core *core = atomic_load_explicit(&client->core, memory_order_acquire);
    return is_mine(core) ? core : replace_core(client, core, error);
}

cl_code cl_client_new(cl_client **client, const cl_config *config, cl_error *error)
{
    *client = NULL;
    cl_error why;
    cl_client *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return cl_no_memory(error);
    }
    cl_code code = cl_settings_check(&made->settings, config, &why);
    cl_core *core = code == CL_OK ? new_core(&made->settings, &why) : NULL;
    if (core == NULL) {
        free(made);
        return cl_fail(error, why.code, "%s", why.message);
    }
    atomic_init(&made->core, core);
    *client = made;
    return CL_OK;
}

void cl_client_free(cl_client *client)
{
    if (client == NULL) {
        return;
    }
    cl_core *core = atomic_load(&client->core);
    if (is_mine(core)) {
        destroy_core(core);
    } else {
        cl_secrets_wipe(core->secrets); /* in a child that never used it */
    }
    free(client);
}

static void count(_Atomic uint64_t *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void cl_client_failed(cl_client *client, cl_code code)
{
    count(&client->counters.failures[code]);
}

void cl_client_accepted(cl_client *client)
{
    count(&client->counters.accepted);
}

void cl_client_acted(cl_client *client, cl_action action)
{
    cl_counters *counters = &client->counters;
    _Atomic uint64_t *const by_action[] = {NULL, &counters->skipped, &counters->dead_lettered, &counters->marked};
    count(by_action[action]);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

cl_code cl_client_numbers(cl_client *client, cl_numbers *numbers, cl_error *error)
{
    const cl_counters *counters = &client->counters;
    cl_core *core = cl_client_core(client, error);
    if (core == NULL) {
        return CL_INTERNAL;
    }
    *numbers = (cl_numbers){.plaintext_accepted = read_counter(&counters->accepted),
                            .skipped = read_counter(&counters->skipped),
                            .dead_lettered = read_counter(&counters->dead_lettered),
                            .marked = read_counter(&counters->marked)};
    for (size_t i = 0; i < CL_CODES; i++) {
        numbers->failures[i] = read_counter(&counters->failures[i]);
    }
    cl_slots_numbers(core->slots, &numbers->records_encrypted, &numbers->records_decrypted);
    cl_keyservice_numbers(core->service, &numbers->key_requests, &numbers->key_request_failures);
    cl_keys_numbers(core->keys, &numbers->keys_cached, &numbers->lease_seconds_left);
    cl_identity *identity = cl_credentials_identity(core->credentials);
    numbers->certificate_seconds_left = identity == NULL ? 0 : cl_identity_seconds_left(identity);
    return CL_OK;
}

const char *cl_version(void)
{
    return CL_VERSION;
}
