/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpctl without its main(): what its parts share. One verb is one call of a
 * method of org.mthpd1 and one rendering of the answer, as text for people or
 * as the JSON that came. Called by mthpctl.c and by the unit tests, which give
 * their own streams. Never touches the kernel's switches itself.
 */
#ifndef MTHPD_CTL_H
#define MTHPD_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "ctl-client.h"

#define CTL_SOCKET_DEFAULT "/run/mthpd/org.mthpd1"

/* Exit codes of mthpctl(1); the last two are those of sysexits.h. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_NO = 1, /* the answer is no, or an error */
	CTL_USAGE = 2,
	CTL_UNREACHABLE = 69,
	CTL_NOT_PERMITTED = 77,
};

struct ctl {
	FILE *out, *err;
	const char *socket;
	bool json;
	long count;       /* -n, -1 = not given */
	const char *pid;  /* --pid, NULL = not given */
	/* record, replay, plot; NULL = not given */
	const char *output, *duration, *max_size, *config;
	bool anonymize;
	const char *verb;
	char **args;      /* behind the verb */
	int n_args;
};

/* Returns an enum ctl_exit. Uses getopt_long() from its beginning. */
int ctl_main(int argc, char **argv, FILE *out, FILE *err);

/* One line to ctl->err that begins with the program's name; bytes that a
 * terminal would obey are escaped. */
void ctl_complain(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The verbs (ctl-verbs.c). */
int ctl_status(const struct ctl *ctl);
int ctl_explain(const struct ctl *ctl);
int ctl_history(const struct ctl *ctl);
int ctl_features(const struct ctl *ctl);
int ctl_verify(const struct ctl *ctl);
int ctl_check_config(const struct ctl *ctl);
int ctl_reload(const struct ctl *ctl);
int ctl_hold(const struct ctl *ctl);
int ctl_release(const struct ctl *ctl);
int ctl_restore(const struct ctl *ctl);
int ctl_metrics(const struct ctl *ctl);

/* Traces (ctl-trace.c, ctl-plot.c). */
int ctl_record(const struct ctl *ctl);
int ctl_replay(const struct ctl *ctl);
int ctl_plot(const struct ctl *ctl);

/* What a failed call to the daemon (-errno) means; returns the exit code. */
int ctl_unreachable(const struct ctl *ctl, int err);
/* The same for an error that it answered. */
int ctl_explain_error(const struct ctl *ctl, const char *method, const struct ctl_reply *r);
/* A complaint about the trace @file; CTL_NO. */
struct trace_why;
int ctl_complain_trace(const struct ctl *ctl, const char *file, int err, const struct trace_why *why);

#endif
