/* The handler of SIGILL, the states of threads, and what tests ask them. */
#define _GNU_SOURCE
#include "amx.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static struct sigaction previous;
static int installed;
static _Atomic(struct amx_state *) states;
static _Thread_local struct amx_state *mine;

/* The state of this thread. From mmap, because a handler may not call malloc. */
static struct amx_state *own_state(void)
{
    if (mine == NULL) {
        void *fresh = mmap(NULL, sizeof *mine, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) {
            return NULL;
        }
        mine = fresh;
        mine->next = atomic_load(&states);
        while (!atomic_compare_exchange_weak(&states, &mine->next, mine)) {
        }
    }
    return mine;
}

static const int register_numbers[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

/* Whether rows of a tile that streams share sets of L1, or lie across two lines. */
static int is_slow(const struct amx_instruction *one)
{
    const uint64_t start = (uintptr_t)one->address, distance = (uint64_t)one->stride;

    return one->kind == TILELOADDT1
        && (start % LINE_BYTES != 0 || distance % (2 * LINE_BYTES) != LINE_BYTES);
}

static void run(struct amx_state *state, const struct amx_instruction *one)
{
    const char *problem = amx_execute(state, one);

    state->counts[one->kind]++;
    state->slow_loads += is_slow(one);
    if (problem != NULL && state->errors++ == 0) {
        strncpy(state->message, problem, sizeof state->message - 1);
    }
}

/* Give a SIGILL that is not ours to whoever had it before. */
static void chain(int number, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else {
        sigaction(SIGILL, &previous, NULL);  /* and the instruction traps again */
    }
}

/* Runs the instruction that trapped and all AMX instructions right behind it. */
static void on_illegal_instruction(int number, siginfo_t *info, void *context)
{
    greg_t *found = ((ucontext_t *)context)->uc_mcontext.gregs;
    struct amx_state *state = own_state();
    struct amx_instruction one;
    uint64_t registers[16];
    int any = 0;

    for (int i = 0; i < 16; i++) {
        registers[i] = (uint64_t)found[register_numbers[i]];
    }
    while (state && amx_decode((const uint8_t *)found[REG_RIP], registers, &one)) {
        run(state, &one);
        found[REG_RIP] += one.length;
        any = 1;
    }
    if (!any) {
        chain(number, info, context);
        return;
    }
    state->traps++;
}

/* What tests call --------------------------------------------------------------- */

/* Take SIGILL; 0 when that worked. Twice is once. */
int amx_install(void)
{
    struct sigaction action;

    if (installed) {
        return 0;
    }
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    installed = sigaction(SIGILL, &action, &previous) == 0;
    return installed ? 0 : -1;
}

/* Give SIGILL back. */
void amx_uninstall(void)
{
    if (installed) {
        sigaction(SIGILL, &previous, NULL);
        installed = 0;
    }
}

/* Forget what was counted; configurations stay. No other thread may run now. */
void amx_reset(void)
{
    for (struct amx_state *one = atomic_load(&states); one; one = one->next) {
        memset(one->counts, 0, sizeof one->counts);
        memset(one->message, 0, sizeof one->message);
        one->traps = one->errors = one->slow_loads = 0;
    }
}

/* Threads that ever ran an AMX instruction; they are numbered from 0, last first. */
int amx_threads(void)
{
    int count = 0;

    for (struct amx_state *one = atomic_load(&states); one; one = one->next) {
        count++;
    }
    return count;
}

static const struct amx_state *thread_state(int thread)
{
    const struct amx_state *one = atomic_load(&states);

    while (one && thread-- > 0) {
        one = one->next;
    }
    return one;
}

/* How often a thread ran an instruction. */
uint64_t amx_count(int thread, int kind)
{
    return thread_state(thread)->counts[kind];
}

/* Signals that a thread took; consecutive instructions take one. */
uint64_t amx_traps(int thread)
{
    return thread_state(thread)->traps;
}

/* Instructions that a processor would have faulted; they were left out. */
uint64_t amx_errors(int thread)
{
    return thread_state(thread)->errors;
}

/* Loads that stream rows which lie badly for the first cache. */
uint64_t amx_slow_loads(int thread)
{
    return thread_state(thread)->slow_loads;
}

const char *amx_first_error(int thread)
{
    return thread_state(thread)->message;
}

/* Whether a thread holds a configuration now. */
int amx_is_configured(int thread)
{
    return thread_state(thread)->configured;
}
