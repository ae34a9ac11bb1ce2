/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One text over HTTP (evhttp): GET /metrics at a unix socket or a loopback port.
 * Called by metrics.c. Bounded: short headers, no bodies, an idle connection
 * ends after METRICS_TIMEOUT_SEC, and one more than METRICS_CONNECTIONS_MAX
 * pushes out the oldest. Knows nothing of the text.
 */
#ifndef MTHPD_METRICS_HTTP_H
#define MTHPD_METRICS_HTTP_H

#include <event2/event.h>

/* The answer's text, to be freed; NULL = 500. */
typedef char *(*metrics_http_fn)(void *userdata);

struct metrics_http;

/* @listen: a path that starts with '/', or 127.0.0.1:PORT. A socket that nobody
 * listens on is replaced. 0, -EADDRINUSE, -EEXIST (something else is there),
 * -EINVAL, or what the system says. */
int metrics_http_new(struct event_base *base, const char *listen, metrics_http_fn fn, void *userdata,
	struct metrics_http **ret);
/* Also removes the socket if it is still the one made here. */
void metrics_http_free(struct metrics_http *h);

#endif
