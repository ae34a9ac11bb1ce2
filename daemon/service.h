/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The methods of org.mthpd1 on the varlink socket: each is one call into the
 * engine. Called by the varlink server; holds no state of its own.
 */
#ifndef MTHPD_SERVICE_H
#define MTHPD_SERVICE_H

#include "engine.h"
#include "metrics.h"
#include "varlink.h"

/* The socket RUNTIME_DIR/org.mthpd1. @metrics (borrowed) may be NULL. 0 or -errno. */
int service_new(struct event_base *base, const char *runtime_dir, struct engine *e,
	struct metrics *metrics, struct varlink_server **ret);

#endif
