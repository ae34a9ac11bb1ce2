/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders of root, and the holds of bus clients. Who sent a message is asked of
 * the bus, and the order waits for that answer, so that a bus that answers
 * slowly delays this order alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "bus-internal.h"
#include "log.h"

#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

/* ---- holds ---- */

static void hold_free(struct bus_hold *h)
{
	if (!h)
		return;
	sd_bus_slot_unref(h->watch);
	free(h->owner);
	free(h->reason);
	free(h);
}

/* The newest hold gives the reason; without one the engine goes on. */
static void tell_engine(struct bus *b)
{
	char reason[BASELINE_REASON_MAX + 64];

	if (!b->holds) {
		engine_hold_briefly(b->engine, NULL);
		return;
	}
	snprintf(reason, sizeof(reason), "%s (bus client %s)",
		*b->holds->reason ? b->holds->reason : "no reason given", b->holds->owner);
	if (engine_hold_briefly(b->engine, reason) < 0)
		log_err("out of memory: a hold of the bus cannot be kept");
}

static void end_hold(struct bus_hold *h)
{
	struct bus *b = h->bus;
	struct bus_hold **at = &b->holds;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	b->n_holds--;
	hold_free(h);
	tell_engine(b);
}

static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus_hold *h = userdata;
	const char *name, *old_owner, *new_owner;

	(void)ret_error;
	if (sd_bus_message_read(m, "sss", &name, &old_owner, &new_owner) < 0 || *new_owner ||
		strcmp(name, h->owner) != 0)
		return 0;
	if (h->cookie == 0)
		h->gone = true;
	else
		end_hold(h);
	return 0;
}

/* Watches the sender from now on: asked before its user, so that the answer to
 * the second question proves that the first one is in force. */
static int hold_new(struct bus *b, sd_bus_message *m, const char *reason, struct bus_hold **ret)
{
	struct bus_hold *h = calloc(1, sizeof(*h));
	char rule[384];
	int r = -ENOMEM;

	if (!h)
		return r;
	h->bus = b;
	h->owner = strdup(sd_bus_message_get_sender(m));
	h->reason = strdup(reason);
	if (h->owner && h->reason) {
		snprintf(rule, sizeof(rule),
			"type='signal',sender='" DRIVER "',path='" DRIVER_PATH "',interface='" DRIVER
			"',member='NameOwnerChanged',arg0='%s'", h->owner);
		r = sd_bus_add_match_async(b->bus, &h->watch, rule, on_owner_changed, NULL, h);
	}
	if (r < 0) {
		hold_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

static int grant_hold(struct bus *b, sd_bus_message *m, struct bus_hold *hold)
{
	if (hold->gone) {
		hold_free(hold);
		return 0; /* nobody reads an answer */
	}
	if (b->n_holds == BUS_HOLDS_MAX) {
		hold_free(hold);
		return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_LIMITS_EXCEEDED,
			"There are %d holds already", BUS_HOLDS_MAX);
	}
	hold->cookie = ++b->last_cookie ? b->last_cookie : ++b->last_cookie;
	hold->next = b->holds;
	b->holds = hold;
	b->n_holds++;
	tell_engine(b);
	return sd_bus_reply_method_return(m, "u", hold->cookie);
}

int bus_hold_call(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;
	struct bus_hold *hold;
	const char *reason;
	int r = sd_bus_message_read(m, "s", &reason);

	if (r < 0)
		return r;
	if (strlen(reason) > BASELINE_REASON_MAX)
		return sd_bus_error_setf(ret_error, SD_BUS_ERROR_INVALID_ARGS,
			"A reason has at most %d bytes", BASELINE_REASON_MAX);
	if (!sd_bus_message_get_sender(m))
		return sd_bus_error_set(ret_error, SD_BUS_ERROR_ACCESS_DENIED, "Nobody sent this");
	if (b->n_orders == BUS_ORDERS_MAX)
		return sd_bus_error_set(ret_error, SD_BUS_ERROR_LIMITS_EXCEEDED, "Too many orders at once");
	r = hold_new(b, m, reason, &hold);
	return r < 0 ? r : bus_order_ask(b, m, hold, grant_hold, ret_error);
}

static int release_hold(struct bus *b, sd_bus_message *m, struct bus_hold *hold)
{
	struct bus_hold *h = b->holds;
	uint32_t cookie = 0;
	int r;

	(void)hold;
	sd_bus_message_rewind(m, true);
	r = sd_bus_message_read(m, "u", &cookie);
	if (r < 0)
		return r;
	while (h && h->cookie != cookie)
		h = h->next;
	if (!h)
		return sd_bus_reply_method_errorf(m, "org.mthpd1.NotFound", "No bus hold has the cookie %u", cookie);
	end_hold(h);
	return sd_bus_reply_method_return(m, "");
}

int bus_release_call(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	return bus_order_ask(userdata, m, NULL, release_hold, ret_error);
}

void bus_holds_forget(struct bus *b, bool end)
{
	bool any = b->holds != NULL;

	while (b->holds) {
		struct bus_hold *h = b->holds;

		b->holds = h->next;
		hold_free(h);
	}
	b->n_holds = 0;
	if (any && end)
		tell_engine(b);
}

/* ---- orders ---- */

static void order_free(struct bus_order *o)
{
	sd_bus_slot_unref(o->question);
	sd_bus_message_unref(o->message);
	hold_free(o->hold);
	free(o);
}

static void unlink_order(struct bus_order *o)
{
	struct bus_order **at = &o->bus->orders;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	o->bus->n_orders--;
}

static int on_user(sd_bus_message *answer, void *userdata, sd_bus_error *ret_error)
{
	struct bus_order *o = userdata;
	struct bus_hold *hold = o->hold;
	uint32_t uid = UINT32_MAX;
	int r;

	(void)ret_error;
	unlink_order(o);
	if (sd_bus_message_is_method_error(answer, NULL) || sd_bus_message_read(answer, "u", &uid) < 0 || uid != 0) {
		sd_bus_reply_method_errorf(o->message, SD_BUS_ERROR_ACCESS_DENIED, "Only root may do this");
	} else {
		o->hold = NULL; /* the order's own now */
		r = o->carry_out(o->bus, o->message, hold);
		if (r < 0)
			sd_bus_reply_method_errno(o->message, r, NULL);
	}
	order_free(o);
	return 1;
}

int bus_order_ask(struct bus *b, sd_bus_message *m, struct bus_hold *hold, bus_order_fn fn,
	sd_bus_error *ret_error)
{
	const char *sender = sd_bus_message_get_sender(m);
	struct bus_order *o = sender && b->n_orders < BUS_ORDERS_MAX ? calloc(1, sizeof(*o)) : NULL;
	int r;

	if (!o) {
		hold_free(hold);
		if (!sender)
			return sd_bus_error_set(ret_error, SD_BUS_ERROR_ACCESS_DENIED, "Nobody sent this");
		return sd_bus_error_set(ret_error, SD_BUS_ERROR_LIMITS_EXCEEDED, "Too many orders at once");
	}
	*o = (struct bus_order){.bus = b, .message = sd_bus_message_ref(m), .hold = hold, .carry_out = fn};
	r = sd_bus_call_method_async(b->bus, &o->question, DRIVER, DRIVER_PATH, DRIVER, "GetConnectionUnixUser",
		on_user, o, "s", sender);
	if (r < 0) {
		order_free(o);
		return r;
	}
	o->next = b->orders;
	b->orders = o;
	b->n_orders++;
	return 1; /* answered later */
}

void bus_orders_forget(struct bus *b)
{
	while (b->orders) {
		struct bus_order *o = b->orders;

		b->orders = o->next;
		order_free(o);
	}
	b->n_orders = 0;
}
