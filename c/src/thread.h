/* Threads of the library's own. */
#ifndef CL_THREAD_H
#define CL_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts a thread that takes no signals: they are the application's. */
static inline bool cl_thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, run, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

#endif
