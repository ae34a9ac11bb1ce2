/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the lines of a trace hold: samples, trees, ticks, decisions. */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"

#define V(type, member) { #member, FIELD_VALUE, offsetof(struct type, member), 0, false }
#define V_AS(type, name, member) { name, FIELD_VALUE, offsetof(struct type, member), 0, false }
#define V_MUST(type, member) { #member, FIELD_VALUE, offsetof(struct type, member), 0, true }
#define B(type, member) { #member, FIELD_BOOL, offsetof(struct type, member), 0, false }
#define U(type, member, limit) { #member, FIELD_UINT, offsetof(struct type, member), limit, false }
#define ERRNO_MAX 4095

static const struct trace_field memcg_fields[] = {
	V_MUST(memcg_sample, now_usec),
	V_MUST(memcg_sample, id),
	B(memcg_sample, full_depth),
	B(memcg_sample, psi_off),
	U(memcg_sample, psi_errno, ERRNO_MAX),
	V_AS(memcg_sample, "some_usec", psi.some.total_usec),
	V_AS(memcg_sample, "full_usec", psi.full.total_usec),
	V_AS(memcg_sample, "events_low", events.low),
	V_AS(memcg_sample, "events_high", events.high),
	V_AS(memcg_sample, "events_max", events.max),
	V_AS(memcg_sample, "events_oom", events.oom),
	V_AS(memcg_sample, "events_oom_kill", events.oom_kill),
	V_AS(memcg_sample, "events_oom_group_kill", events.oom_group_kill),
	V_AS(memcg_sample, "local_low", events_local.low),
	V_AS(memcg_sample, "local_high", events_local.high),
	V_AS(memcg_sample, "local_max", events_local.max),
	V_AS(memcg_sample, "local_oom", events_local.oom),
	V_AS(memcg_sample, "local_oom_kill", events_local.oom_kill),
	V_AS(memcg_sample, "local_oom_group_kill", events_local.oom_group_kill),
	V(memcg_sample, current_bytes),
	V(memcg_sample, max_bytes),
	V(memcg_sample, high_bytes),
	V(memcg_sample, low_bytes),
	V(memcg_sample, min_bytes),
	V(memcg_sample, limit_bytes),
	V(memcg_sample, margin_bytes),
	V(memcg_sample, swap_current_bytes),
	V(memcg_sample, swap_max_bytes),
	V(memcg_sample, swap_events_max),
	V(memcg_sample, swap_events_fail),
	V(memcg_sample, anon),
	V(memcg_sample, file),
	V(memcg_sample, kernel),
	V(memcg_sample, shmem),
	V(memcg_sample, anon_thp),
	V(memcg_sample, shmem_thp),
	V(memcg_sample, inactive_anon),
	V(memcg_sample, inactive_file),
	V(memcg_sample, file_dirty),
	V(memcg_sample, file_writeback),
	V(memcg_sample, pgfault),
	V(memcg_sample, pgmajfault),
	V(memcg_sample, refault_anon),
	V(memcg_sample, refault_file),
	V(memcg_sample, activate_anon),
	V(memcg_sample, pgscan),
	V(memcg_sample, pgsteal),
	V(memcg_sample, thp_fault_alloc),
	V(memcg_sample, thp_collapse_alloc),
	V(memcg_sample, thp_swpout_fallback),
	V(memcg_sample, swapcached),
	V(memcg_sample, pswpin),
	V(memcg_sample, pswpout),
	V(memcg_sample, thp_scanned),
	V(memcg_sample, thp_young),
	V(memcg_sample, thp_split_avoided),
	V(memcg_sample, thp_size_limited),
	V(memcg_sample, margin_anon),
	V(memcg_sample, margin_swpin),
	V(memcg_sample, margin_shmem),
	V(memcg_sample, margin_collapse),
	V(memcg_sample, usage_usec),
	V(memcg_sample, user_usec),
	V(memcg_sample, system_usec),
};

static const struct trace_field host_fields[] = {
	V_MUST(host_sample, now_usec),
	U(host_sample, psi_errno, ERRNO_MAX),
	V_AS(host_sample, "some_usec", psi.some.total_usec),
	V_AS(host_sample, "full_usec", psi.full.total_usec),
	V(host_sample, mem_total_kb),
	V(host_sample, mem_available_kb),
	V(host_sample, swap_total_kb),
	V(host_sample, swap_free_kb),
	V(host_sample, swaps_size_kb),
	V(host_sample, swaps_used_kb),
	V(host_sample, pgfault),
	V(host_sample, pgmajfault),
	V(host_sample, pswpin),
	V(host_sample, pswpout),
	V(host_sample, compact_stall),
	V(host_sample, compact_fail),
	V(host_sample, thp_fault_alloc),
	V(host_sample, thp_fault_fallback),
	V(host_sample, thp_collapse_alloc),
	V(host_sample, thp_swpout_fallback),
	V(host_sample, refault_anon),
	V(host_sample, allocstall),
	V(host_sample, min_free_kbytes),
};

static const struct trace_field stats_fields[] = {
	V(thp_stats, anon_fault_alloc),
	V(thp_stats, anon_fault_fallback),
	V(thp_stats, anon_fault_fallback_charge),
	V(thp_stats, anon_fault_fallback_margin),
	V(thp_stats, swpin),
	V(thp_stats, swpin_fallback),
	V(thp_stats, swpout),
	V(thp_stats, swpout_fallback),
	V(thp_stats, split),
	V(thp_stats, split_failed),
	V(thp_stats, split_deferred),
	V(thp_stats, nr_anon),
	V(thp_stats, nr_anon_partially_mapped),
	V(thp_stats, collapse_alloc),
};

static const struct trace_field tree_fields[] = {
	{ "page_kb", FIELD_UINT, offsetof(struct thp_tree, page_kb), 1024, true },
	V_MUST(thp_tree, pmd_kb),
	B(thp_tree, per_size),
	B(thp_tree, mthp_collapse),
	B(thp_tree, size_swpin),
	B(thp_tree, unparseable),
	V(thp_tree, max_ptes_none),
	V(thp_tree, max_ptes_swap),
	V(thp_tree, max_ptes_shared),
	V(thp_tree, pages_to_scan),
	V(thp_tree, scan_sleep_millisecs),
	V(thp_tree, alloc_sleep_millisecs),
	V(thp_tree, khugepaged_defrag),
	V(thp_tree, shrink_underused),
	V(thp_tree, full_scans),
	V(thp_tree, pages_collapsed),
};

static json_t *fields_json(const struct trace_field *f, size_t n, const void *base)
{
	json_t *j = json_object();

	if (trace_fields_put(j, f, n, base))
		return j;
	json_decref(j);
	return NULL;
}

json_t *trace_memcg_json(const struct memcg_sample *s)
{
	return fields_json(memcg_fields, ELEMENTSOF(memcg_fields), s);
}

int trace_memcg_get(const json_t *j, struct memcg_sample *ret, struct trace_why *why)
{
	memset(ret, 0, sizeof(*ret));
	return trace_fields_get(j, "sample of a group", memcg_fields, ELEMENTSOF(memcg_fields), ret, why);
}

json_t *trace_host_json(const struct host_sample *s)
{
	return fields_json(host_fields, ELEMENTSOF(host_fields), s);
}

int trace_host_get(const json_t *j, struct host_sample *ret, struct trace_why *why)
{
	memset(ret, 0, sizeof(*ret));
	return trace_fields_get(j, "host", host_fields, ELEMENTSOF(host_fields), ret, why);
}

json_t *trace_stats_json(uint64_t size_kb, const struct thp_stats *s)
{
	json_t *j = fields_json(stats_fields, ELEMENTSOF(stats_fields), s);

	if (trace_put(j, "size_kb", json_integer((json_int_t)size_kb)))
		return j;
	json_decref(j);
	return NULL;
}

int trace_stats_get(const json_t *j, uint64_t *ret_size_kb, struct thp_stats *ret, struct trace_why *why)
{
	int r = trace_fields_get(j, "sizes", stats_fields, ELEMENTSOF(stats_fields), ret, why);

	return r < 0 ? r : trace_get_value(j, "sizes", "size_kb", true, ret_size_kb, why);
}

json_t *trace_bytes_json(const char *s)
{
	json_t *j = json_string(s);
	size_t n = strlen(s), used = 0;
	char *buf;

	if (j)
		return j;
	buf = malloc(n * 4 + 1);
	if (!buf)
		return NULL;
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(buf + used, 5, (unsigned char)s[i] < 0x80 ? "%c" : "\\x%02x",
			(unsigned)(unsigned char)s[i]);
	j = json_string(buf);
	free(buf);
	return j;
}

/* ---- the tree ---------------------------------------------------------- */

/* As the kernel prints it. An absent choice is left out. */
static bool put_choice(json_t *j, const char *key, const struct choice *c)
{
	char text[CHOICE_MAX * (CHOICE_LEN + 3)];
	size_t used = 0;

	if (!c->n)
		return true;
	for (unsigned i = 0; i < c->n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			i == c->selected ? "%s[%s]" : "%s%s", i ? " " : "", c->token[i]);
	return trace_put(j, key, trace_bytes_json(text));
}

static int get_choice(const json_t *j, const char *what, const char *key, struct choice *ret,
	struct trace_why *why)
{
	const char *s;
	int r = trace_get_string(j, what, key, false, &s, why);

	*ret = (struct choice){ 0 };
	if (r < 0 || !s)
		return r;
	if (parse_choice(s, ret) < 0)
		return trace_fault(why, "%s: %s is not a line of words with one in brackets", what, key);
	return 0;
}

static json_t *size_json(const struct thp_size *z)
{
	json_t *j = json_object();

	if (trace_put(j, "size_kb", json_integer((json_int_t)z->size_kb)) &&
		put_choice(j, "enabled", &z->enabled) &&
		put_choice(j, "shmem_enabled", &z->shmem_enabled) &&
		(!z->enabled_unparseable || trace_put(j, "enabled_unparseable", json_true())))
		return j;
	json_decref(j);
	return NULL;
}

json_t *trace_tree_json(const struct thp_tree *t)
{
	json_t *j = fields_json(tree_fields, ELEMENTSOF(tree_fields), t), *sizes = json_array();
	bool ok = put_choice(j, "enabled", &t->enabled) &&
		  put_choice(j, "shmem_enabled", &t->shmem_enabled) &&
		  put_choice(j, "defrag", &t->defrag);

	for (unsigned i = 0; ok && i < t->n_sizes; i++)
		ok = json_array_append_new(sizes, size_json(&t->sizes[i])) == 0;
	ok &= trace_put(j, "sizes", sizes);
	if (ok)
		return j;
	json_decref(j);
	return NULL;
}

static bool power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

static int get_tree_size(const json_t *j, uint64_t above_kb, struct thp_size *z, struct trace_why *why)
{
	static const char what[] = "tree: sizes";
	int r;

	if (!json_is_object(j))
		return trace_fault(why, "%s: not an object", what);
	r = trace_get_value(j, what, "size_kb", true, &z->size_kb, why);
	if (r < 0)
		return r;
	if (!power_of_two(z->size_kb) || z->size_kb > UINT32_MAX || z->size_kb <= above_kb)
		return trace_fault(why, "%s: size_kb is no size, or not in ascending order", what);
	r = get_choice(j, what, "enabled", &z->enabled, why);
	if (r == 0)
		r = get_choice(j, what, "shmem_enabled", &z->shmem_enabled, why);
	return r < 0 ? r : trace_get_bool(j, what, "enabled_unparseable", &z->enabled_unparseable, why);
}

/* A number file holds what fits into an unsigned int of the kernel. */
static int check_numbers(const struct thp_tree *t, struct trace_why *why)
{
	const uint64_t numbers[] = { t->max_ptes_none, t->max_ptes_swap, t->max_ptes_shared,
		t->pages_to_scan, t->scan_sleep_millisecs, t->alloc_sleep_millisecs,
		t->khugepaged_defrag, t->shrink_underused };

	if (!power_of_two(t->page_kb) || !power_of_two(t->pmd_kb) || t->pmd_kb > UINT32_MAX ||
		t->pmd_kb < t->page_kb)
		return trace_fault(why, "tree: page_kb and pmd_kb are no page sizes");
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		if (numbers[i] != VALUE_ABSENT && numbers[i] > UINT32_MAX)
			return trace_fault(why, "tree: a number is too large for its file");
	return 0;
}

int trace_tree_get(const json_t *j, struct thp_tree *ret, struct trace_why *why)
{
	json_t *sizes = NULL, *one;
	size_t i;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = trace_fields_get(j, "tree", tree_fields, ELEMENTSOF(tree_fields), ret, why);
	if (r == 0)
		r = check_numbers(ret, why);
	if (r == 0)
		r = get_choice(j, "tree", "enabled", &ret->enabled, why);
	if (r == 0)
		r = get_choice(j, "tree", "shmem_enabled", &ret->shmem_enabled, why);
	if (r == 0)
		r = get_choice(j, "tree", "defrag", &ret->defrag, why);
	if (r == 0)
		r = trace_get_container(j, "tree", "sizes", JSON_ARRAY, true, &sizes, why);
	if (r < 0)
		return r;
	if (json_array_size(sizes) > THP_SIZES_MAX)
		return trace_fault(why, "tree: more than %d sizes", THP_SIZES_MAX);
	ret->pmd_nr = ret->pmd_kb / ret->page_kb;
	json_array_foreach(sizes, i, one)
	{
		r = get_tree_size(one, i ? ret->sizes[i - 1].size_kb : 0, &ret->sizes[i], why);
		if (r < 0)
			return r;
		ret->n_sizes++;
	}
	return 0;
}

static const char *number_text(uint64_t v, char *buf)
{
	if (!value_known(v))
		return NULL;
	snprintf(buf, CHOICE_LEN, "%" PRIu64, v);
	return buf;
}

const char *trace_tree_value(const struct thp_tree *t, const char *path, char *buf)
{
	static const struct {
		const char *path;
		size_t offset;
	} numbers[] = {
		{ "khugepaged/max_ptes_none", offsetof(struct thp_tree, max_ptes_none) },
		{ "khugepaged/defrag", offsetof(struct thp_tree, khugepaged_defrag) },
		{ "khugepaged/scan_sleep_millisecs", offsetof(struct thp_tree, scan_sleep_millisecs) },
		{ "shrink_underused", offsetof(struct thp_tree, shrink_underused) },
	};
	char name[THP_PATH_MAX];

	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		if (!strcmp(path, numbers[i].path))
			return number_text(
				*(const uint64_t *)((const char *)t + numbers[i].offset), buf);
	if (!strcmp(path, "enabled"))
		return choice_value(&t->enabled);
	if (!strcmp(path, "defrag"))
		return choice_value(&t->defrag);
	for (unsigned i = 0; i < t->n_sizes; i++) {
		if (!strcmp(path, thp_size_path(name, t->sizes[i].size_kb, "enabled")))
			return choice_value(&t->sizes[i].enabled);
		if (!strcmp(path, thp_size_path(name, t->sizes[i].size_kb, "shmem_enabled")))
			return choice_value(&t->sizes[i].shmem_enabled);
	}
	return NULL;
}

/* ---- header ------------------------------------------------------------ */

/* A file's value, short enough for the loop's own structures. */
static int check_stands(const json_t *stands, struct trace_why *why)
{
	const char *path;
	json_t *v;

	if (json_object_size(stands) > LOOP_KNOBS_MAX)
		return trace_fault(why, "stands: more than %d files", (int)LOOP_KNOBS_MAX);
	json_object_foreach((json_t *)stands, path, v)
		if (!json_is_string(v) || json_string_length(v) >= CHOICE_LEN ||
			strlen(path) >= THP_PATH_MAX)
			return trace_fault(why, "stands: %.60s is not a short string", path);
	return 0;
}

int trace_header_get(const json_t *j, struct trace_header *ret, struct trace_why *why)
{
	static const char what[] = "header";
	struct trace_header h = { 0 };
	const char *format;
	uint64_t version, cpus;
	json_t *tree;

	if (trace_get_string(j, what, "format", true, &format, why) < 0 ||
		trace_get_value(j, what, "version", true, &version, why) < 0)
		return -EBADMSG;
	if (strcmp(format, TRACE_FORMAT) != 0)
		return trace_fault(why, "header: format is not " TRACE_FORMAT);
	if (version != TRACE_VERSION)
		return trace_fault(why, "header: version %" PRIu64 " of the format, this program reads %d",
			version, TRACE_VERSION);
	if (trace_get_string(j, what, "mthpd", true, &h.mthpd, why) < 0 ||
		trace_get_string(j, what, "kernel", true, &h.kernel, why) < 0 ||
		trace_get_string(j, what, "config", true, &h.config_text, why) < 0 ||
		trace_get_bool(j, what, "anonymized", &h.anonymized, why) < 0 ||
		trace_get_bool(j, what, "boot_never", &h.boot_never, why) < 0 ||
		trace_get_value(j, what, "cpus", true, &cpus, why) < 0 ||
		trace_get_value(j, what, "mem_total_kb", false, &h.mem_total_kb, why) < 0 ||
		trace_get_value(j, what, "realtime_usec", true, &h.realtime_usec, why) < 0 ||
		trace_get_value(j, what, "now_usec", true, &h.now_usec, why) < 0 ||
		trace_get_container(j, what, "tree", JSON_OBJECT, true, &tree, why) < 0 ||
		trace_get_container(j, what, "stands", JSON_OBJECT, true, &h.stands, why) < 0 ||
		trace_get_container(j, what, "state", JSON_OBJECT, false, &h.state, why) < 0 ||
		trace_tree_get(tree, &h.tree, why) < 0 || check_stands(h.stands, why) < 0)
		return -EBADMSG;
	if (cpus < 1 || cpus > TRACE_CPUS_MAX)
		return trace_fault(why, "header: cpus is out of range");
	h.cpus = (unsigned)cpus;
	*ret = h;
	return 0;
}

/* ---- ticks ------------------------------------------------------------- */

static int get_group(const json_t *j, struct trace_group *g, struct trace_why *why)
{
	static const char what[] = "group";
	json_t *first, *sample, *own;

	if (!json_is_object(j))
		return trace_fault(why, "groups: not an object");
	if (trace_get_value(j, what, "id", true, &g->id, why) < 0 ||
		trace_get_string(j, what, "path", true, &g->path, why) < 0 ||
		trace_get_string(j, what, "policy", false, &g->policy, why) < 0 ||
		trace_get_bool(j, what, "late", &g->late, why) < 0 ||
		trace_get_bool(j, what, "gone", &g->gone, why) < 0 ||
		trace_get_value(j, what, "added_usec", false, &g->added_usec, why) < 0 ||
		trace_get_container(j, what, "first", JSON_OBJECT, false, &first, why) < 0 ||
		trace_get_container(j, what, "own", JSON_OBJECT, false, &own, why) < 0 ||
		trace_get_container(j, what, "sample", JSON_OBJECT, false, &sample, why) < 0)
		return -EBADMSG;
	g->has_first = first != NULL;
	g->has_sample = sample != NULL;
	g->has_own = own != NULL;
	if (own && trace_own_get(own, &g->own, why) < 0)
		return -EBADMSG;
	if (first && trace_memcg_get(first, &g->first, why) < 0)
		return -EBADMSG;
	return sample ? trace_memcg_get(sample, &g->sample, why) : 0;
}

static int get_groups(const json_t *j, struct trace_tick *t, struct trace_why *why)
{
	json_t *groups = NULL, *one;
	size_t i;
	int r = trace_get_container(j, "tick", "groups", JSON_ARRAY, true, &groups, why);

	if (r < 0)
		return r;
	if (json_array_size(groups) > TRACE_GROUPS_MAX)
		return trace_fault(why, "tick: more than %d groups", TRACE_GROUPS_MAX);
	t->groups = calloc(json_array_size(groups) + 1, sizeof(*t->groups));
	if (!t->groups)
		return -ENOMEM;
	json_array_foreach(groups, i, one)
	{
		r = get_group(one, &t->groups[i], why);
		if (r < 0)
			return r;
		t->n_groups++;
	}
	return 0;
}

static int get_stats(const json_t *j, struct trace_tick *t, struct trace_why *why)
{
	json_t *sizes = NULL, *one;
	size_t i;
	int r = trace_get_container(j, "tick", "sizes", JSON_ARRAY, false, &sizes, why);

	if (r < 0)
		return r;
	if (json_array_size(sizes) > THP_SIZES_MAX)
		return trace_fault(why, "tick: more than %d sizes", THP_SIZES_MAX);
	json_array_foreach(sizes, i, one)
	{
		r = trace_stats_get(one, &t->stats_kb[i], &t->stats[i], why);
		if (r < 0)
			return r;
		t->n_stats++;
	}
	return 0;
}

static int get_host(const json_t *j, struct trace_tick *t, struct trace_why *why)
{
	json_t *host, *khugepaged;

	if (trace_get_container(j, "tick", "host", JSON_OBJECT, false, &host, why) < 0 ||
		trace_get_container(j, "tick", "khugepaged", JSON_OBJECT, false, &khugepaged, why) < 0 ||
		trace_get_value(khugepaged, "khugepaged", "full_scans", false, &t->full_scans, why) < 0 ||
		trace_get_value(khugepaged, "khugepaged", "pages_collapsed", false,
			&t->pages_collapsed, why) < 0 ||
		trace_get_value(j, "tick", "dying_cgroups", false, &t->dying_cgroups, why) < 0)
		return -EBADMSG;
	t->has_host = host != NULL;
	return host ? trace_host_get(host, &t->host, why) : 0;
}

static int get_tick(const json_t *j, struct trace_tick *t, struct trace_why *why)
{
	static const char what[] = "tick";
	json_t *tree;
	int r;

	if (trace_get_value(j, what, "now_usec", true, &t->now_usec, why) < 0 ||
		trace_get_value(j, what, "decided_usec", false, &t->decided_usec, why) < 0 ||
		trace_get_value(j, what, "reconfigured_usec", false, &t->reconfigured_usec, why) < 0 ||
		trace_get_bool(j, what, "held", &t->held, why) < 0 ||
		trace_get_bool(j, what, "foreign", &t->foreign, why) < 0 ||
		trace_get_bool(j, what, "rebased", &t->rebased, why) < 0 ||
		trace_get_bool(j, what, "apply", &t->apply, why) < 0 ||
		trace_get_string(j, what, "config", false, &t->config_text, why) < 0 ||
		trace_get_container(j, what, "tree", JSON_OBJECT, false, &tree, why) < 0 ||
		trace_get_container(j, what, "stands", JSON_OBJECT, false, &t->stands, why) < 0 ||
		trace_get_container(j, what, "unwritten", JSON_ARRAY, false, &t->unwritten, why) < 0 ||
		trace_get_value(j, what, "left_out", false, &t->left_out, why) < 0)
		return -EBADMSG;
	if (t->now_usec == VALUE_MAX)
		return trace_fault(why, "tick: now_usec is not a number");
	t->has_tree = tree != NULL;
	if (tree && trace_tree_get(tree, &t->tree, why) < 0)
		return -EBADMSG;
	if (t->stands && check_stands(t->stands, why) < 0)
		return -EBADMSG;
	r = get_host(j, t, why);
	if (r == 0)
		r = get_stats(j, t, why);
	return r < 0 ? r : get_groups(j, t, why);
}

int trace_tick_get(const json_t *j, struct trace_tick *ret, struct trace_why *why)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	r = get_tick(j, ret, why);
	if (r < 0)
		trace_tick_done(ret);
	return r;
}

void trace_tick_done(struct trace_tick *t)
{
	free(t->groups);
	t->groups = NULL;
	t->n_groups = 0;
}

/* ---- decisions --------------------------------------------------------- */

/* A share 0..1 as a JSON number, -1 when missing. */
static int get_share(const json_t *j, const char *key, double *ret, struct trace_why *why)
{
	const json_t *v = json_object_get(j, key);

	*ret = -1;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_number(v))
		return trace_fault(why, "decision: %s is not a number", key);
	*ret = json_number_value(v);
	if (*ret < 0 || *ret > 1)
		return trace_fault(why, "decision: %s is not a share", key);
	return 0;
}

int trace_decision_get(const json_t *j, struct trace_decision *ret, struct trace_why *why)
{
	static const char what[] = "decision";
	struct trace_decision d = { 0 };
	uint64_t others;

	if (trace_get_value(j, what, "now_usec", true, &d.now_usec, why) < 0 ||
		trace_get_value(j, what, "realtime_usec", false, &d.realtime_usec, why) < 0 ||
		trace_get_value(j, what, "number", true, &d.number, why) < 0 ||
		trace_get_string(j, what, "knob", true, &d.knob, why) < 0 ||
		trace_get_string(j, what, "old", true, &d.old_value, why) < 0 ||
		trace_get_string(j, what, "new", true, &d.new_value, why) < 0 ||
		trace_get_string(j, what, "reason", true, &d.reason, why) < 0 ||
		trace_get_string(j, what, "outcome", false, &d.outcome, why) < 0 ||
		trace_get_string(j, what, "cgroup", false, &d.group, why) < 0 ||
		get_share(j, "some", &d.some, why) < 0 || get_share(j, "full", &d.full, why) < 0 ||
		trace_get_value(j, what, "margin_bytes", false, &d.margin_bytes, why) < 0 ||
		trace_get_value(j, what, "refault_anon_per_sec", false, &d.refault_per_sec, why) < 0 ||
		trace_get_value(j, what, "others", false, &others, why) < 0)
		return -EBADMSG;
	d.others = (unsigned)value_or(others, 0);
	*ret = d;
	return 0;
}

static json_t *value_or_null(uint64_t v)
{
	return value_known(v) ? json_integer((json_int_t)v) : json_null();
}

static json_t *share_or_null(double v)
{
	return v >= 0 ? json_real(v) : json_null();
}

static const char *text_of_reason(const char *word)
{
	for (unsigned i = 0; i < REASON_MAX; i++)
		if (!strcmp(word, reason_word((enum reason)i)))
			return reason_text((enum reason)i);
	return "";
}

json_t *trace_decision_json(const struct trace_decision *d)
{
	return json_pack(
		"{s:s, s:I, s:o, s:I, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:I}", "kind",
		"decision", "now_usec", (json_int_t)d->now_usec, "realtime_usec",
		value_or_null(d->realtime_usec), "number", (json_int_t)d->number, "knob", d->knob, "old",
		d->old_value, "new", d->new_value, "reason", d->reason, "reason_text",
		text_of_reason(d->reason), "cgroup", d->group ? trace_bytes_json(d->group) : json_null(),
		"outcome", d->outcome, "some", share_or_null(d->some), "full", share_or_null(d->full),
		"margin_bytes", value_or_null(d->margin_bytes), "refault_anon_per_sec",
		value_or_null(d->refault_per_sec), "others", (json_int_t)d->others);
}
