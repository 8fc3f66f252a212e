/* A list of blocks for each owner that has any. */
#include "attach.h"

#include <stdlib.h>

typedef struct attachment {
    struct attachment *next;
    uint8_t bytes[];
} attachment;

static cl_map attachments = CL_MAP_INIT;

uint8_t *cl_attach(const void *owner, size_t size)
{
    attachment *fresh = malloc(sizeof *fresh + size);
    if (fresh == NULL) {
        return NULL;
    }
    fresh->next = cl_map_get(&attachments, owner);
    if (!cl_map_put(&attachments, owner, fresh)) {
        free(fresh);
        return NULL;
    }
    return fresh->bytes;
}

void cl_detach(const void *owner)
{
    attachment *each = cl_map_take(&attachments, owner);
    while (each != NULL) {
        attachment *next = each->next;
        free(each);
        each = next;
    }
}
