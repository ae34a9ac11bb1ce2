/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The status object of mthpctl(1) as text for a person at a terminal of 80
 * columns: state and why it is degraded, sizes, khugepaged, the groups that
 * suffer most. Called by the verb status; takes any JSON without harm, prints
 * "-" for what is null, missing or of another type.
 */
#ifndef MTHPD_CTL_STATUS_H
#define MTHPD_CTL_STATUS_H

#include <jansson.h>
#include <stdio.h>

#define CTL_STATUS_GROUPS 10

/* At most @max_groups groups, the worst first: by stall share (some, then
 * full), then by the smaller margin. */
void ctl_status_print(FILE *f, const json_t *status, size_t max_groups);

#endif
