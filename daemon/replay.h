/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpd --replay=TRACE: what the controller would have decided, one JSON object
 * per line. Called by main instead of starting the daemon; needs no privileges,
 * opens the two files that it is given and writes to @out only.
 */
#ifndef MTHPD_REPLAY_H
#define MTHPD_REPLAY_H

#include <stdio.h>

/* EX_DATAERR of sysexits.h: the trace is not one, or is damaged. */
#define REPLAY_EX_TRACE 65

/* @config_file: NULL = the configuration that was recorded. Returns the exit
 * code after it said why: 0, 1 (cannot be read, or not written), 65, 78. */
int replay_command(const char *trace, const char *config_file, FILE *out, FILE *err);

#endif
