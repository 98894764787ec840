/* What each GPU of this machine has moved over its links, whoever asked for it. */
#ifndef LINK_COUNTER_H
#define LINK_COUNTER_H

#include <stdio.h>

/* Writes a JSON array with one object for each GPU; an empty one where there is no NVML. */
void link_counter_write(FILE *out);

#endif
