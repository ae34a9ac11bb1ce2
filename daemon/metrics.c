/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "history.h"
#include "log.h"
#include "metrics-http.h"

struct counted {
	char group[HISTORY_GROUP_LEN];
	uint64_t n;
};

struct metrics {
	struct event_base *base;
	struct engine *engine;
	struct engine_observer observer;
	struct event *later;
	struct metrics_http *http;
	char *listen; /* as last tried, NULL = off */
	uint64_t reasons[REASON_MAX];
	struct counted *counted; /* up to METRICS_COUNTED_MAX */
	unsigned n_counted;
	uint64_t others; /* changes for groups beyond them */
};

/* ---- decisions ---- */

static void count_group(struct metrics *m, const char *group)
{
	struct counted *more;

	for (unsigned i = 0; i < m->n_counted; i++)
		if (!strcmp(m->counted[i].group, group)) {
			m->counted[i].n++;
			return;
		}
	more = m->n_counted < METRICS_COUNTED_MAX
		       ? realloc(m->counted, (m->n_counted + 1) * sizeof(*more)) : NULL;
	if (!more) {
		m->others++;
		return;
	}
	m->counted = more;
	snprintf(more[m->n_counted].group, sizeof(more->group), "%s", group);
	more[m->n_counted++].n = 1;
}

static void on_decision(const struct decision *d, void *userdata)
{
	struct metrics *m = userdata;

	if (d->reason < REASON_MAX)
		m->reasons[d->reason]++;
	if (*d->group)
		count_group(m, d->group);
}

static json_t *changes_json(const struct metrics *m)
{
	json_t *reasons = json_object(), *cgroups = json_object();

	for (unsigned i = 0; i < REASON_MAX; i++)
		if (m->reasons[i])
			json_object_set_new(reasons, reason_word(i), json_integer((json_int_t)m->reasons[i]));
	for (unsigned i = 0; i < m->n_counted; i++) {
		json_t *name = json_from_bytes(m->counted[i].group);

		json_object_set_new(cgroups, json_is_string(name) ? json_string_value(name) : "?",
			json_integer((json_int_t)m->counted[i].n));
		json_decref(name);
	}
	return json_pack("{s:o, s:o, s:I}", "reasons", reasons, "cgroups", cgroups, "others",
		(json_int_t)m->others);
}

char *metrics_text(struct metrics *m)
{
	json_t *facts = engine_metrics(m->engine, METRICS_GROUPS_MAX);
	char *text = NULL;
	size_t size;
	FILE *f = facts ? open_memstream(&text, &size) : NULL;

	if (f) {
		json_object_set_new(facts, "changes", changes_json(m));
		metrics_print(f, facts);
		if (fclose(f) != 0) {
			free(text);
			text = NULL;
		}
	}
	json_decref(facts);
	return text;
}

/* ---- where it listens ---- */

static char *http_text(void *userdata)
{
	return metrics_text(userdata);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void listen_anew(struct metrics *m)
{
	const char *listen = engine_metrics_listen(m->engine);
	int r;

	if (same(listen, m->listen))
		return;
	metrics_http_free(m->http);
	m->http = NULL;
	free(m->listen);
	m->listen = listen ? strdup(listen) : NULL;
	engine_undegrade(m->engine, "metrics");
	if (!m->listen)
		return;
	r = metrics_http_new(m->base, m->listen, http_text, m, &m->http);
	if (r < 0)
		engine_degrade(m->engine, "metrics", "metrics cannot be had at %s: %s%s", m->listen, strerror(-r),
			r != -EAFNOSUPPORT ? "" :
					     " (the unit allows unix sockets only; loopback-metrics.conf among "
					     "the examples opens it)");
	else
		log_info("metrics at %s%s", *m->listen == '/' ? "" : "http://", m->listen);
}

/* Not at once: to say that it failed changes the state. */
static void on_changed(void *userdata)
{
	struct metrics *m = userdata;

	if (!same(engine_metrics_listen(m->engine), m->listen))
		event_active(m->later, EV_TIMEOUT, 0);
}

static void on_later(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	listen_anew(userdata);
}

int metrics_new(struct event_base *base, struct engine *e, struct metrics **ret)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->base = base;
	m->engine = e;
	m->later = evtimer_new(base, on_later, m);
	m->observer = (struct engine_observer){.decision = on_decision, .changed = on_changed, .userdata = m};
	r = m->later ? engine_observe(e, &m->observer) : -ENOMEM;
	if (r < 0) {
		metrics_free(m);
		return r;
	}
	listen_anew(m);
	*ret = m;
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	metrics_http_free(m->http);
	if (m->later)
		event_free(m->later);
	free(m->listen);
	free(m->counted);
	free(m);
}
