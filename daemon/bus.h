/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon on the message bus: sd-bus on the libevent loop. The name
 * org.mthpd1, the object /org/mthpd1 with org.mthpd1.Manager, and the log level
 * by org.freedesktop.LogControl1; see org.mthpd1(5). Called by main. It never
 * waits for the bus: whoever sends an order is looked up asynchronously, a bus
 * that is not there is waited for with inotify, one that goes away is looked
 * for again, and one that does not take what is sent is left. It never decides:
 * the methods read the engine or pass an order on.
 */
#ifndef MTHPD_BUS_H
#define MTHPD_BUS_H

#include <event2/event.h>

#include "engine.h"

#define BUS_NAME "org.mthpd1"
#define BUS_PATH "/org/mthpd1"
#define BUS_INTERFACE "org.mthpd1.Manager"

/* Orders of clients whose user is being asked for, and holds that stand. */
#define BUS_ORDERS_MAX 16
#define BUS_HOLDS_MAX 64
/* Messages that the bus did not take yet; beyond it the connection is given up. */
#define BUS_QUEUE_MAX 1024
#define BUS_RETRY_MIN_SEC 1
#define BUS_RETRY_MAX_SEC 60

struct bus;

/* Connects to the bus at @address (NULL = the system's) and keeps at it. The
 * result must be freed after @e. 0, or -errno when it cannot even try. */
int bus_new(struct event_base *base, struct engine *e, const char *address, struct bus **ret);
void bus_free(struct bus *b);

#endif
