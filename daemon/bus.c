/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus-internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "cleanup.h"
#include "history.h"
#include "log.h"

/* Messages answered in one turn of the loop; ticks and other clients go between. */
#define TURN_MESSAGES 8
#define SYSTEM_BUS "unix:path=/run/dbus/system_bus_socket"

static void attach(struct bus *b);

/* ---- what is announced ---- */

const json_t *bus_summary(struct bus *b)
{
	if (!b->summary)
		b->summary = engine_summary(b->engine);
	return b->summary;
}

static void forget_summary(struct bus *b)
{
	json_decref(b->summary);
	b->summary = NULL;
}

json_t *bus_sizes(const json_t *summary)
{
	static const char *const words[] = {"baseline", "actual", "effective", "wanted", "reason"};
	json_t *sizes = json_array(), *size;
	size_t i;

	json_array_foreach(json_object_get(summary, "sizes"), i, size)
	{
		json_t *row = json_array();

		json_array_append(row, json_object_get(size, "size_kb"));
		for (size_t w = 0; w < ELEMENTSOF(words); w++) {
			const char *s = json_string_value(json_object_get(size, words[w]));

			json_array_append_new(row, json_string(s ? s : ""));
		}
		json_array_append_new(sizes, row);
	}
	return sizes;
}

static json_t *announcement(struct bus *b)
{
	const json_t *summary = bus_summary(b);

	return json_pack("{s:O, s:O, s:o}", "State", json_object_get(summary, "state"), "DegradedReasons",
		json_object_get(summary, "degraded"), "Sizes", bus_sizes(summary));
}

/* Tells the properties that differ from what was told last. */
static void announce(struct bus *b)
{
	json_t *now = announcement(b), *value;
	char *names[4] = {NULL};
	unsigned n = 0;
	const char *name;

	if (!now)
		return;
	json_object_foreach(now, name, value)
	{
		if (b->announced && !json_equal(value, json_object_get(b->announced, name)))
			names[n++] = (char *)name;
	}
	if (n > 0 && b->bus)
		sd_bus_emit_properties_changed_strv(b->bus, BUS_PATH, BUS_INTERFACE, names);
	json_decref(b->announced);
	b->announced = now;
}

/* Not at once: we may be in the middle of a decision, or of a message. */
static void soon(struct bus *b)
{
	forget_summary(b);
	if (b->bus)
		event_active(b->later, EV_TIMEOUT, 0);
}

static void on_decision(const struct decision *d, void *userdata)
{
	struct bus *b = userdata;
	json_t *group;

	if (!b->bus)
		return;
	group = json_from_bytes(d->group);
	sd_bus_emit_signal(b->bus, BUS_PATH, BUS_INTERFACE, "Decision", "sssss",
		json_is_string(group) ? json_string_value(group) : "", d->knob, d->old_value, d->new_value,
		reason_word(d->reason));
	json_decref(group);
	soon(b);
}

static void on_drift(const char *path, const char *expected, const char *found, void *userdata)
{
	struct bus *b = userdata;
	json_t *text;

	if (!b->bus)
		return;
	text = json_from_bytes(found);
	sd_bus_emit_signal(b->bus, BUS_PATH, BUS_INTERFACE, "DriftDetected", "sss", path, expected,
		json_is_string(text) ? json_string_value(text) : "");
	json_decref(text);
	soon(b);
}

static void on_changed(void *userdata)
{
	soon(userdata);
}

/* ---- the connection ---- */

static void detach(struct bus *b)
{
	event_del(b->io);
	event_del(b->timer);
}

static void wait_usec(struct event *ev, uint64_t usec)
{
	struct timeval tv = {.tv_sec = (time_t)(usec / 1000000), .tv_usec = (suseconds_t)(usec % 1000000)};

	evtimer_add(ev, &tv);
}

/* Called from the loop only, never by what sd-bus calls. */
static void lose(struct bus *b, int r)
{
	if (b->connected)
		log_info("the connection to the message bus is lost (%s): trying again", strerror(-r));
	else if (!b->said_absent)
		log_info("no message bus (%s): trying again now and then", strerror(-r));
	b->said_absent = true;
	b->connected = false;
	detach(b);
	bus_orders_forget(b);
	b->bus = sd_bus_close_unref(b->bus);
	bus_holds_forget(b, true);
	wait_usec(b->timer, (uint64_t)b->retry_sec * 1000000);
	b->retry_sec = b->retry_sec * 2 > BUS_RETRY_MAX_SEC ? BUS_RETRY_MAX_SEC : b->retry_sec * 2;
}

static void on_io(evutil_socket_t fd, short what, void *userdata);

static void watch_fd(struct bus *b, int fd, int events)
{
	short want = (short)(EV_PERSIST | (events & POLLIN ? EV_READ : 0) | (events & POLLOUT ? EV_WRITE : 0));

	/* Each time anew: sd-bus may have closed the descriptor and got another one
	 * with the same number, which epoll does not know. */
	event_del(b->io);
	if (want == EV_PERSIST)
		return;
	event_assign(b->io, b->base, fd, want, on_io, b);
	event_add(b->io, NULL);
}

/* What sd-bus waits for now becomes what the loop waits for. */
static void attach(struct bus *b)
{
	int fd = sd_bus_get_fd(b->bus), events = sd_bus_get_events(b->bus);
	uint64_t until, now;
	struct timespec ts;
	int r = sd_bus_get_timeout(b->bus, &until);

	if (fd < 0 || events < 0 || r < 0) {
		lose(b, fd < 0 ? fd : events < 0 ? events : r);
		return;
	}
	if (sd_bus_get_n_queued_write(b->bus, &now) >= 0 && now > BUS_QUEUE_MAX) {
		lose(b, -ENOBUFS);
		return;
	}
	watch_fd(b, fd, events);
	if (until == UINT64_MAX) {
		event_del(b->timer);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
	wait_usec(b->timer, until > now ? until - now : 0);
}

static int on_named(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;
	uint32_t answer = 0;

	(void)ret_error;
	/* The bus let us in, whatever it says about the name. */
	b->connected = true;
	b->retry_sec = BUS_RETRY_MIN_SEC;
	if (sd_bus_message_is_method_error(m, NULL))
		log_warning("the message bus refuses the name " BUS_NAME ": %s (is its policy installed?)",
			sd_bus_message_get_error(m)->message);
	else if (sd_bus_message_read(m, "u", &answer) >= 0 && answer == 2)
		log_warning("the name " BUS_NAME " is taken on the message bus: waiting for it");
	else
		log_info("on the message bus as " BUS_NAME);
	return 1;
}

/* One line when there is no bus: sd-bus then holds an inotify descriptor. */
static void say_absent(struct bus *b)
{
	int domain, fd = sd_bus_get_fd(b->bus);
	socklen_t len = sizeof(domain);

	if (b->said_absent || fd < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0)
		return;
	log_info("no message bus: " BUS_NAME " appears when it comes up");
	b->said_absent = true;
}

static int dial(struct bus *b)
{
	int r = sd_bus_new(&b->bus);

	if (r >= 0)
		r = sd_bus_set_address(b->bus, b->address);
	if (r >= 0)
		r = sd_bus_set_bus_client(b->bus, true);
	if (r >= 0)
		r = sd_bus_negotiate_fds(b->bus, true);
	if (r >= 0)
		r = sd_bus_set_watch_bind(b->bus, true);
	if (r >= 0)
		r = sd_bus_start(b->bus);
	if (r >= 0)
		r = bus_manager_add(b);
	if (r >= 0)
		r = bus_log_add(b);
	if (r >= 0)
		r = sd_bus_request_name_async(b->bus, NULL, BUS_NAME, SD_BUS_NAME_QUEUE, on_named, b);
	return r;
}

static void connect_bus(struct bus *b)
{
	int r = dial(b);

	if (r < 0) {
		lose(b, r);
		return;
	}
	say_absent(b);
	json_decref(b->announced);
	b->announced = announcement(b);
	forget_summary(b);
	attach(b);
}

static void turn(struct bus *b)
{
	int r = 1;

	for (unsigned i = 0; i < TURN_MESSAGES && r > 0; i++)
		r = sd_bus_process(b->bus, NULL);
	forget_summary(b);
	if (r < 0)
		lose(b, r);
	else
		attach(b);
}

static void on_io(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	turn(userdata);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct bus *b = userdata;

	(void)fd;
	(void)what;
	if (b->bus)
		turn(b);
	else
		connect_bus(b);
}

static void on_later(evutil_socket_t fd, short what, void *userdata)
{
	struct bus *b = userdata;

	(void)fd;
	(void)what;
	if (!b->bus)
		return;
	announce(b);
	forget_summary(b);
	attach(b);
}

int bus_new(struct event_base *base, struct engine *e, const char *address, struct bus **ret)
{
	struct bus *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->base = base;
	b->engine = e;
	b->retry_sec = BUS_RETRY_MIN_SEC;
	b->address = strdup(address ? address : SYSTEM_BUS);
	b->io = event_new(base, -1, EV_PERSIST, on_io, b);
	b->timer = evtimer_new(base, on_timer, b);
	b->later = evtimer_new(base, on_later, b);
	b->observer = (struct engine_observer){
		.decision = on_decision, .drift = on_drift, .changed = on_changed, .userdata = b};
	r = b->address && b->io && b->timer && b->later ? engine_observe(e, &b->observer) : -ENOMEM;
	if (r < 0) {
		bus_free(b);
		return r;
	}
	connect_bus(b);
	*ret = b;
	return 0;
}

void bus_free(struct bus *b)
{
	if (!b)
		return;
	bus_orders_forget(b);
	bus_holds_forget(b, false);
	sd_bus_close_unref(b->bus);
	forget_summary(b);
	json_decref(b->announced);
	if (b->io)
		event_free(b->io);
	if (b->timer)
		event_free(b->timer);
	if (b->later)
		event_free(b->later);
	free(b->address);
	free(b);
}
