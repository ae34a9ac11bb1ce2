/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the bus share: bus.c (the connection and what is announced),
 * bus-manager.c (org.mthpd1.Manager), bus-order.c (orders of root, and holds),
 * bus-log.c (org.freedesktop.LogControl1). For these files only.
 */
#ifndef MTHPD_BUS_INTERNAL_H
#define MTHPD_BUS_INTERNAL_H

#include <systemd/sd-bus.h>

#include "bus.h"

/* A hold of a client: it ends when its owner's name leaves the bus. */
struct bus_hold {
	struct bus *bus;
	uint32_t cookie; /* 0 = its owner's user is still being asked for */
	char *owner, *reason;
	bool gone; /* the owner left before the answer came */
	sd_bus_slot *watch;
	struct bus_hold *next;
};

/* An order, while the bus is asked for the user of its sender. */
typedef int (*bus_order_fn)(struct bus *b, sd_bus_message *m, struct bus_hold *hold);
struct bus_order {
	struct bus *bus;
	sd_bus_message *message;
	struct bus_hold *hold; /* of Hold() */
	bus_order_fn carry_out;
	sd_bus_slot *question;
	struct bus_order *next;
};

struct bus {
	struct event_base *base;
	struct engine *engine;
	struct engine_observer observer;
	char *address;
	sd_bus *bus; /* NULL between two tries */
	struct event *io, *timer, *later;
	unsigned retry_sec;
	bool said_absent, connected;
	json_t *summary;   /* engine_summary() of this turn of the loop, for getters */
	json_t *announced; /* {State, DegradedReasons, Sizes} as last told */
	struct bus_order *orders;
	struct bus_hold *holds;
	unsigned n_orders, n_holds;
	uint32_t last_cookie;
};

/* ---- bus.c */
/* Borrowed until the end of this turn of the loop; NULL on ENOMEM. */
const json_t *bus_summary(struct bus *b);
/* The property Sizes as JSON: arrays of what each struct holds. */
json_t *bus_sizes(const json_t *summary);

/* ---- bus-manager.c */
int bus_manager_add(struct bus *b);

/* ---- bus-order.c */
/* Calls @fn if root sent @m, otherwise answers with AccessDenied. Returns what a
 * handler returns. @hold goes along and is ended unless @fn keeps it. */
int bus_order_ask(struct bus *b, sd_bus_message *m, struct bus_hold *hold, bus_order_fn fn,
	sd_bus_error *ret_error);
int bus_hold_call(sd_bus_message *m, void *userdata, sd_bus_error *ret_error);
int bus_release_call(sd_bus_message *m, void *userdata, sd_bus_error *ret_error);
/* The connection is lost: nobody waits for an answer, all owners are gone. */
void bus_orders_forget(struct bus *b);
/* @end: tell the engine. */
void bus_holds_forget(struct bus *b, bool end);

/* ---- bus-log.c */
int bus_log_add(struct bus *b);

#endif
