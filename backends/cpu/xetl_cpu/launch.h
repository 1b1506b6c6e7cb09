#ifndef XETL_LAUNCH_H
#define XETL_LAUNCH_H
/* What launches of all kernels share. C11 or C++11, Linux on x86-64. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    XETL_ERROR_MEMORY = -1, /* no memory for the workspace */
    XETL_ERROR_STRIDE = -2, /* a stride is not what the kernel needs, such as 1 */
    XETL_ERROR_TILES = -3,  /* Linux does not permit AMX */
    XETL_ERROR_SHAPE = -4   /* a size is not what the kernel is for */
};

/* Memory that launches need: {0} at first, kept and grown from launch to launch, freed
 * by xetl_workspace_free. One for each thread that launches; NULL: a new one each time. */
typedef struct {
    void *memory;
    char *start;
    int64_t bytes;
} xetl_workspace;

static inline void xetl_workspace_free(xetl_workspace *workspace)
{
    free(workspace->memory);
    memset(workspace, 0, sizeof *workspace);
}

static inline int xetl_workspace_reserve(xetl_workspace *workspace, int64_t bytes)
{
    const uintptr_t page = 4096; /* it starts in the middle of one: arrays seldom do */

    xetl_workspace_free(workspace);
    workspace->memory = malloc((size_t)bytes + page);
    if (!workspace->memory)
        return XETL_ERROR_MEMORY;
    workspace->start = (char *)workspace->memory
                       + (page + page / 2 - (uintptr_t)workspace->memory % page) % page;
    workspace->bytes = bytes;
    return 0;
}

typedef void xetl_task(void *args, int64_t *count, int64_t *steps, void *context);

/* Run `task` for *count threads; args[0] is the first thread's number. */
static inline void xetl_fork(xetl_task *task, int64_t *args, int64_t *count,
                             int64_t *steps, void *context, int64_t inner,
                             int64_t arrays, int64_t threads)
{
    const int64_t first = args[0], end = first + count[0];

    (void)inner;
    (void)arrays;
    (void)threads;
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads((int)threads)
#endif
    for (int64_t thread = first; thread < end; thread++) {
        int64_t mine = thread, one = 1;

        task(&mine, &one, steps, context);
    }
}

static inline int64_t xetl_bits(double value)
{
    int64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline int64_t *xetl_put_array(int64_t *slot, const void *data, int rank,
                                      const int64_t *shape, const int64_t *strides)
{
    *slot++ = (int64_t)(intptr_t)data;
    for (int dim = 0; dim < rank; dim++)
        slot[dim] = shape[dim];
    for (int dim = 0; dim < rank; dim++)
        slot[rank + dim] = strides[dim];
    return slot + 2 * rank;
}

static inline int xetl_launch(int64_t (*kernel)(int64_t *), int64_t *slots,
                              const int64_t grid[3], xetl_workspace *given)
{
    /* What forks and joins; about how many nanoseconds its last join lost. */
    static int64_t pool[2];
    xetl_workspace own = {NULL, NULL, 0};
    xetl_workspace *workspace = given ? given : &own;
    int64_t threads = 1, result;

#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    pool[0] = (int64_t)(intptr_t)&xetl_fork;
    slots[0] = threads > 1 ? (int64_t)(intptr_t)pool : 0;
    slots[1] = threads;
    memcpy(slots + 4, grid, 3 * sizeof grid[0]);
    for (;;) {
        slots[2] = (int64_t)(intptr_t)workspace->start;
        slots[3] = workspace->bytes;
        result = kernel(slots);
        if (result <= 0)
            break;
        /* Nothing was written: the kernel says how much memory it wants. */
        result = xetl_workspace_reserve(workspace, result);
        if (result)
            break;
    }
    if (!given)
        xetl_workspace_free(&own);
    return (int)result;
}

#endif /* XETL_LAUNCH_H */

#if defined XETL_NEEDS_TILES && !defined XETL_TILES_H
#define XETL_TILES_H

/* Ask Linux for the state of AMX tiles; 0: it may be used. The call of the system is
 * spelled out: C11 without extensions does not declare `syscall`. */
static inline int xetl_permit_tiles(void)
{
    const int64_t request_permission = 0x1023, tile_data = 18;
    int64_t result = 158; /* arch_prctl */

    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(request_permission), "S"(tile_data)
                     : "rcx", "r11", "memory");
    return result != 0;
}
#endif /* XETL_TILES_H */
