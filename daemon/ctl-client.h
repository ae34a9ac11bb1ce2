/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A blocking varlink client for one call, or for the replies to one call with
 * "more". Called by the verbs of mthpctl; gives up after its time and at
 * CTL_REPLY_BYTES_MAX, never retries, never prints.
 */
#ifndef MTHPD_CTL_CLIENT_H
#define MTHPD_CTL_CLIENT_H

#include <jansson.h>

#define CTL_TIMEOUT_MSEC 15000
#define CTL_REPLY_BYTES_MAX (16 * 1024 * 1024)

struct ctl_reply {
	json_t *root;             /* owns the others */
	const char *error;        /* full name of a varlink error, NULL = success */
	json_t *parameters;       /* an object, never NULL */
};

/* Calls @method with @parameters (stolen, NULL = none) at the socket @path.
 * Returns 0 with *ret filled (ctl_reply_done() it), also for an error that the
 * service answered; or -errno: ENOENT/ECONNREFUSED nobody listens,
 * EACCES/EPERM, ETIMEDOUT, ECONNRESET it hung up without an answer, EPROTO the
 * answer is not varlink, EMSGSIZE, ENAMETOOLONG, ENOMEM. */
int ctl_call(const char *path, const char *method, json_t *parameters, int timeout_msec,
	struct ctl_reply *ret);
void ctl_reply_done(struct ctl_reply *r);

/* One call with "more": its replies come one by one. */
struct ctl_stream;
/* Sends the call (@parameters is stolen, NULL = none). 0 or an error of ctl_call(). */
int ctl_stream_open(const char *path, const char *method, json_t *parameters, int timeout_msec,
	struct ctl_stream **ret);
/* The next reply. Besides the errors of ctl_call(): -ETIMEDOUT nothing came within
 * @timeout_msec, -EINTR a signal came first; both leave the stream as it was. */
int ctl_stream_next(struct ctl_stream *s, int timeout_msec, struct ctl_reply *ret);
void ctl_stream_free(struct ctl_stream *s);

#endif
