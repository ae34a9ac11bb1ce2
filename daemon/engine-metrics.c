/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the engine knows, for metrics: the summary, the kernel's own counters per
 * size, and the groups with the most anonymous memory, looked at anew. Costs a
 * read per group, when somebody asks.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "engine-internal.h"

/* Reading memory.stat of all groups stops here; what is left is said. */
#define METRICS_BUDGET_USEC UINT64_C(100000)
/* Counters that a size's stats directory may have; the kernel has some twenty. */
#define STATS_MAX 64

struct ranked {
	struct node *node;
	uint64_t anon;
};

const char *engine_metrics_listen(const struct engine *e)
{
	return e->config->metrics_listen;
}

/* ---- sizes ---- */

/* A name that can be part of a metric's. */
static bool is_counter(const char *name)
{
	return strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(name) && *name && strlen(name) <= 64;
}

static void add_stat(json_t *stats, const char *name, uint64_t size_kb, uint64_t value)
{
	json_t *by_size = json_object_get(stats, name);
	char kb[32];

	if (!by_size) {
		if (json_object_size(stats) == STATS_MAX)
			return;
		by_size = json_object();
		json_object_set_new(stats, name, by_size);
	}
	snprintf(kb, sizeof(kb), "%llu", (unsigned long long)size_kb);
	json_object_set_new(by_size, kb, json_from_value(value));
}

static void add_stats_of(struct engine *e, uint64_t size_kb, json_t *stats)
{
	char path[THP_PATH_MAX], text[64];
	int fd = openat(e->thp_fd, thp_size_path(path, size_kb, "stats"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	uint64_t v;

	if (!d) {
		cleanup_close(&fd);
		return;
	}
	while ((entry = readdir(d)))
		if (is_counter(entry->d_name) && parse_read_attr_at(fd, entry->d_name, text, sizeof(text)) > 0 &&
			parse_u64(text, &v) == 0)
			add_stat(stats, entry->d_name, size_kb, v);
}

static json_t *stats_json(struct engine *e)
{
	json_t *stats = json_object();

	for (unsigned i = 0; i < e->tree_base.n_sizes; i++)
		add_stats_of(e, e->tree_base.sizes[i].size_kb, stats);
	return stats;
}

static json_t *khugepaged_json(struct engine *e)
{
	struct thp_tree now;

	if (thp_tree_read(e->thp_fd, e->tree_base.page_kb, &now) < 0)
		return json_object();
	return json_pack("{s:o, s:o, s:o}", "max_ptes_none", json_from_value(now.max_ptes_none), "full_scans",
		json_from_value(now.full_scans), "pages_collapsed", json_from_value(now.pages_collapsed));
}

/* ---- groups ---- */

/* VALUE_ABSENT when it is gone or does not say. */
static uint64_t read_anon(struct engine *e, const struct node *n)
{
	static const struct flat_key key = {"anon", 0};
	char path[PATH_MAX], buf[32768];
	uint64_t v;

	if (n == e->host)
		return 0;
	if (snprintf(path, sizeof(path), "%s/memory.stat", n->path) >= (int)sizeof(path) ||
		parse_read_attr_at(e->cg_fd, path, buf, sizeof(buf)) < 0)
		return VALUE_ABSENT;
	parse_flat_keyed(buf, &key, 1, &v);
	return v;
}

static int most_first(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	uint64_t x = value_or(a->anon, 0), y = value_or(b->anon, 0);

	return x != y ? (x < y) - (x > y) : strcmp(a->node->path, b->node->path);
}

/* All units with their anonymous memory, the most first. */
static struct ranked *rank_groups(struct engine *e, size_t *ret_n, size_t *ret_unread)
{
	uint64_t until = engine_now_usec() + METRICS_BUDGET_USEC;
	size_t n = 0, size = e->tree ? tree_count(e->tree) : 1;
	struct ranked *all = calloc(size + 1, sizeof(*all));

	*ret_n = *ret_unread = 0;
	if (!all)
		return NULL;
	if (e->host)
		all[n++].node = e->host;
	for (struct node *g = e->tree ? tree_root(e->tree) : NULL; g && n < size; g = tree_next(g)) {
		if (g->kind != NODE_UNIT)
			continue;
		all[n].node = g;
		all[n].anon = engine_now_usec() < until ? read_anon(e, g) : VALUE_ABSENT;
		*ret_unread += !value_known(all[n++].anon);
	}
	qsort(all, n, sizeof(*all), most_first);
	*ret_n = n;
	return all;
}

static json_t *group_facts(struct engine *e, const struct node *n)
{
	struct memcg_sample s;
	const char *gate;
	json_t *j;

	if (engine_peek(e, n, &s) != MEMCG_OK)
		return NULL;
	j = engine_group_json(e, n, &s);
	gate = json_string_value(json_object_get(json_object_get(j, "own"), "gate"));
	if (gate)
		json_object_set_new(j, "gate_open", json_integer(!strcmp(gate, "open") || !strcmp(gate, "trial")));
	json_object_set_new(j, "some_usec", json_from_value(s.psi.some.total_usec));
	json_object_set_new(j, "full_usec", json_from_value(s.psi.full.total_usec));
	json_object_set_new(j, "refault_anon", json_from_value(s.refault_anon));
	return j;
}

static void add_groups(struct engine *e, size_t max, json_t *facts)
{
	json_t *groups = json_array();
	size_t n, unread, rest = 0;
	struct ranked *all = rank_groups(e, &n, &unread);
	uint64_t rest_anon = 0;

	for (size_t i = 0; i < n; i++) {
		json_t *j = json_array_size(groups) < max ? group_facts(e, all[i].node) : NULL;

		if (j) {
			json_array_append_new(groups, j);
			continue;
		}
		rest++;
		rest_anon += value_or(all[i].anon, 0);
	}
	free(all);
	json_object_set_new(facts, "groups", groups);
	json_object_set_new(facts, "rest", json_pack("{s:I, s:I, s:I}", "groups", (json_int_t)rest, "anon_bytes",
		(json_int_t)rest_anon, "unread", (json_int_t)unread));
}

json_t *engine_metrics(struct engine *e, size_t max_groups)
{
	json_t *facts = engine_summary(e);

	if (!facts)
		return NULL;
	json_object_set_new(facts, "release", json_from_bytes(e->caps.release));
	json_object_set_new(facts, "stats", stats_json(e));
	json_object_set_new(facts, "khugepaged", khugepaged_json(e));
	json_object_set_new(facts, "swap", json_pack("{s:s, s:o, s:o}", "state",
		swap_state_to_string(e->loop->host.swap), "size_kb", json_from_value(e->host_now.swaps_size_kb),
		"used_kb", json_from_value(e->host_now.swaps_used_kb)));
	add_groups(e, max_groups, facts);
	engine_trim_later(e);
	return facts;
}
