/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memcg.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "cleanup.h"

/* Two lines of psi, or up to ten event counters, or one number. */
#define SMALL_BYTES 1024
/* memory.stat has 60 to 80 keys of some 30 bytes; room for 1,000. */
#define STAT_BYTES (32 * 1024)

/* One level of the hierarchy: where its files are. */
struct reader {
	int root_fd;
	bool denied; /* some file is there and may not be read */
	const char *unclear; /* the first file with text that is not understood; NULL = none */
	size_t len;  /* of the group's path and the slash behind it, 0 for the root */
	char path[PATH_MAX + sizeof("memory.events.local")];
};

/* @name is a constant. An empty file says nothing, which is no garbage. */
static void not_understood(struct reader *r, const char *name)
{
	if (!r->unclear)
		r->unclear = name;
}

/* The length read; 0 = this file is not to be had and its fields stay absent
 * (*ret_why says why); negative = the sample is lost, -ENODEV when the group is.
 * ENOENT is both: still_there() tells in the end. */
static ssize_t read_optional(
	struct reader *r, const char *name, char *buf, size_t size, int *ret_why)
{
	ssize_t n;

	memcpy(r->path + r->len, name, strlen(name) + 1);
	n = parse_read_attr_at(r->root_fd, r->path, buf, size);
	*ret_why = 0;
	if (n > 0)
		return n;
	switch (n) {
	case -ENODEV:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EIO:
		return n;
	case -EACCES:
	case -EPERM:
		r->denied = true;
		break;
	case -EFBIG: /* no kernel writes so much */
		not_understood(r, name);
		break;
	}
	*ret_why = n == 0 ? EINVAL : (int)-n;
	return 0;
}

/* The text of the file @name into @s: one that has not one of the keys is not understood. */
static void take_keyed(struct reader *r, const char *name, const char *text,
	const struct flat_key *keys, size_t n_keys, struct memcg_sample *s)
{
	bool any = false;

	parse_flat_keyed(text, keys, n_keys, s);
	for (size_t i = 0; i < n_keys; i++)
		any |= value_known(*(const uint64_t *)(const void *)((char *)s + keys[i].offset));
	if (!any && *text)
		not_understood(r, name);
}

static int read_keyed(struct reader *r, const char *name, const struct flat_key *keys,
	size_t n_keys, struct memcg_sample *s)
{
	char buf[SMALL_BYTES];
	int why;
	ssize_t n = read_optional(r, name, buf, sizeof(buf), &why);

	if (n < 0)
		return (int)n;
	if (n == 0)
		buf[0] = '\0';
	take_keyed(r, name, buf, keys, n_keys, s);
	return 0;
}

/* A limit in bytes; VALUE_ABSENT when it is not to be had. */
static int read_limit(
	struct reader *r, const char *name, uint64_t mem_total_bytes, uint64_t *ret)
{
	char buf[SMALL_BYTES];
	int why;
	ssize_t n = read_optional(r, name, buf, sizeof(buf), &why);

	if (n < 0)
		return (int)n;
	if (n == 0 || parse_limit(buf, ret) < 0) {
		*ret = VALUE_ABSENT;
		if (n > 0)
			not_understood(r, name);
	} else if (value_known(*ret) && *ret > 0 && value_known(mem_total_bytes) &&
		 mem_total_bytes > 0 && (*ret - 1) / 16 >= mem_total_bytes) {
		*ret = VALUE_MAX;
	}
	return 0;
}

/* What is held, in bytes; a usage beyond every real value is not understood. */
static int read_usage(struct reader *r, const char *name, uint64_t *ret)
{
	int e = read_limit(r, name, VALUE_ABSENT, ret);

	if (e == 0 && !value_known(*ret))
		*ret = VALUE_ABSENT;
	return e;
}

static int read_psi(struct reader *r, struct memcg_sample *s)
{
	char buf[SMALL_BYTES];
	ssize_t n = read_optional(r, "memory.pressure", buf, sizeof(buf), &s->psi_errno);

	s->psi.some = s->psi.full = (struct psi_line){ VALUE_ABSENT, 0 };
	if (n < 0)
		return (int)n;
	if (n > 0 && parse_psi(buf, &s->psi) < 0) {
		s->psi_errno = EINVAL;
		not_understood(r, "memory.pressure");
	}
	s->psi_off = s->psi_errno == ENOENT || s->psi_errno == EOPNOTSUPP;
	return 0;
}

#define EVENT_KEYS(member)                                                                         \
	{                                                                                          \
		{ "low", offsetof(struct memcg_sample, member.low) },                              \
		{ "high", offsetof(struct memcg_sample, member.high) },                            \
		{ "max", offsetof(struct memcg_sample, member.max) },                              \
		{ "oom", offsetof(struct memcg_sample, member.oom) },                              \
		{ "oom_kill", offsetof(struct memcg_sample, member.oom_kill) },                    \
		{ "oom_group_kill", offsetof(struct memcg_sample, member.oom_group_kill) },        \
	}
static const struct flat_key event_keys[] = EVENT_KEYS(events);
static const struct flat_key event_local_keys[] = EVENT_KEYS(events_local);

static const struct flat_key swap_event_keys[] = {
	{ "max", offsetof(struct memcg_sample, swap_events_max) },
	{ "fail", offsetof(struct memcg_sample, swap_events_fail) },
};

static const struct flat_key cpu_keys[] = {
	{ "usage_usec", offsetof(struct memcg_sample, usage_usec) },
	{ "user_usec", offsetof(struct memcg_sample, user_usec) },
	{ "system_usec", offsetof(struct memcg_sample, system_usec) },
};

/* In the order in which the kernel prints them (memcg_stat_format). */
static const struct flat_key stat_keys[] = {
	{ "anon", offsetof(struct memcg_sample, anon) },
	{ "file", offsetof(struct memcg_sample, file) },
	{ "kernel", offsetof(struct memcg_sample, kernel) },
	{ "shmem", offsetof(struct memcg_sample, shmem) },
	{ "file_dirty", offsetof(struct memcg_sample, file_dirty) },
	{ "file_writeback", offsetof(struct memcg_sample, file_writeback) },
	{ "swapcached", offsetof(struct memcg_sample, swapcached) },
	{ "anon_thp", offsetof(struct memcg_sample, anon_thp) },
	{ "shmem_thp", offsetof(struct memcg_sample, shmem_thp) },
	{ "inactive_anon", offsetof(struct memcg_sample, inactive_anon) },
	{ "inactive_file", offsetof(struct memcg_sample, inactive_file) },
	{ "workingset_refault_anon", offsetof(struct memcg_sample, refault_anon) },
	{ "workingset_refault_file", offsetof(struct memcg_sample, refault_file) },
	{ "workingset_activate_anon", offsetof(struct memcg_sample, activate_anon) },
	{ "pgscan", offsetof(struct memcg_sample, pgscan) },
	{ "pgsteal", offsetof(struct memcg_sample, pgsteal) },
	{ "pgfault", offsetof(struct memcg_sample, pgfault) },
	{ "pgmajfault", offsetof(struct memcg_sample, pgmajfault) },
	{ "thp_fault_alloc", offsetof(struct memcg_sample, thp_fault_alloc) },
	{ "thp_collapse_alloc", offsetof(struct memcg_sample, thp_collapse_alloc) },
	{ "thp_swpout_fallback", offsetof(struct memcg_sample, thp_swpout_fallback) },
	{ "pswpin", offsetof(struct memcg_sample, pswpin) },
	{ "pswpout", offsetof(struct memcg_sample, pswpout) },
	{ "thp_reclaim_scanned", offsetof(struct memcg_sample, thp_scanned) },
	{ "thp_reclaim_young", offsetof(struct memcg_sample, thp_young) },
	{ "thp_swpout_split_avoided", offsetof(struct memcg_sample, thp_split_avoided) },
	{ "thp_size_limited", offsetof(struct memcg_sample, thp_size_limited) },
};

static const struct flat_key thp_event_keys[] = {
	{ "margin_anon", offsetof(struct memcg_sample, margin_anon) },
	{ "margin_swpin", offsetof(struct memcg_sample, margin_swpin) },
	{ "margin_shmem", offsetof(struct memcg_sample, margin_shmem) },
	{ "margin_collapse", offsetof(struct memcg_sample, margin_collapse) },
};

static bool has_events(const struct memcg_events *e)
{
	return value_known(e->max) || value_known(e->high) || value_known(e->oom_kill);
}

/* Pressure and hierarchical events: all that a cheap look costs. */
static int read_cheap(struct reader *r, struct memcg_sample *s)
{
	int e = read_psi(r, s);

	return e < 0 ? e : read_keyed(r, "memory.events", event_keys, ELEMENTSOF(event_keys), s);
}

static int read_stat(struct reader *r, struct memcg_sample *s)
{
	char buf[STAT_BYTES];
	int why;
	ssize_t n = read_optional(r, "memory.stat", buf, sizeof(buf), &why);

	if (n < 0)
		return (int)n;
	if (n == 0)
		buf[0] = '\0';
	take_keyed(r, "memory.stat", buf, stat_keys, ELEMENTSOF(stat_keys), s);
	return 0;
}

static int read_own_limits(struct reader *r, uint64_t mem_total_bytes, struct memcg_sample *s)
{
	const struct {
		const char *name;
		uint64_t *value;
	} limits[] = {
		{ "memory.max", &s->max_bytes },
		{ "memory.high", &s->high_bytes },
		{ "memory.low", &s->low_bytes },
		{ "memory.min", &s->min_bytes },
		{ "memory.swap.max", &s->swap_max_bytes },
	};

	for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
		int e = read_limit(r, limits[i].name, mem_total_bytes, limits[i].value);

		if (e < 0)
			return e;
	}
	return 0;
}

/* Takes one level of the hierarchy into the sample's limit and margin. A level
 * whose usage is unknown narrows the limit only. */
static void narrow(struct memcg_sample *s, uint64_t limit, uint64_t usage)
{
	s->limit_bytes = value_min(s->limit_bytes, limit);
	if (value_known(usage))
		s->margin_bytes = value_min(s->margin_bytes, value_sub(limit, usage));
}

/* "a/b/c/" -> "a/b/"; false when there is no ancestor below the root, which has
 * no limits (CFTYPE_NOT_ON_ROOT). */
static bool go_up(struct reader *r)
{
	if (r->len > 0)
		r->len--;
	while (r->len > 0 && r->path[r->len - 1] != '/')
		r->len--;
	return r->len > 0;
}

static int read_ancestor(struct reader *r, uint64_t mem_total_bytes, struct memcg_sample *s)
{
	uint64_t max, high = VALUE_ABSENT, usage;
	int e = read_limit(r, "memory.max", mem_total_bytes, &max);

	if (e == 0)
		e = read_limit(r, "memory.high", mem_total_bytes, &high);
	if (e < 0 || !value_known(value_min(max, high)))
		return e;
	e = read_usage(r, "memory.current", &usage);
	if (e == 0)
		narrow(s, value_min(max, high), usage);
	return e;
}

static int read_margin(
	const struct reader *r, uint64_t mem_total_bytes, struct memcg_sample *s)
{
	struct reader up = *r;
	uint64_t own = value_min(s->max_bytes, s->high_bytes);

	s->limit_bytes = s->margin_bytes = VALUE_MAX;
	if (value_known(own))
		narrow(s, own, s->current_bytes);
	while (go_up(&up)) {
		int e = read_ancestor(&up, mem_total_bytes, s);

		if (e < 0)
			return e;
	}
	/* Limited, but not one level says how much it holds. */
	if (s->margin_bytes == VALUE_MAX && s->limit_bytes != VALUE_MAX)
		s->margin_bytes = VALUE_ABSENT;
	return 0;
}

static int read_full(struct reader *r, uint64_t mem_total_bytes, struct memcg_sample *s)
{
	int e = read_keyed(
		r, "memory.events.local", event_local_keys, ELEMENTSOF(event_local_keys), s);

	if (e == 0)
		e = read_usage(r, "memory.current", &s->current_bytes);
	if (e == 0)
		e = read_usage(r, "memory.swap.current", &s->swap_current_bytes);
	if (e == 0)
		e = read_own_limits(r, mem_total_bytes, s);
	if (e == 0)
		e = read_margin(r, mem_total_bytes, s);
	if (e == 0)
		e = read_keyed(r, "memory.swap.events", swap_event_keys,
			ELEMENTSOF(swap_event_keys), s);
	if (e == 0)
		e = read_stat(r, s);
	if (e == 0)
		e = read_keyed(r, "cpu.stat", cpu_keys, ELEMENTSOF(cpu_keys), s);
	/* The kernel that counts the one has the other. */
	if (e == 0 && value_known(s->thp_size_limited))
		e = read_keyed(r, "memory.thp.events", thp_event_keys, ELEMENTSOF(thp_event_keys), s);
	return e;
}

/* Names relative to the root: no empty, "." or ".." component. */
static int check_path(const char *path)
{
	if (strlen(path) > PATH_MAX - sizeof("/memory.current"))
		return -ENAMETOOLONG;
	for (const char *s = path; *path;) {
		const char *end = strchrnul(s, '/');
		size_t n = (size_t)(end - s);

		if (n == 0 || strncmp(s, "..", n) == 0)
			return -EINVAL;
		if (!*end)
			break;
		s = end + 1;
	}
	return 0;
}

/* The directory's inode; VALUE_ABSENT when there is no such directory. */
static int find_id(struct reader *r, uint64_t *ret_id)
{
	struct stat st;

	r->path[r->len] = '\0'; /* the slash at the end refuses all but directories */
	if (fstatat(r->root_fd, r->len > 0 ? r->path : ".", &st, 0) < 0) {
		if (errno != ENOENT && errno != ENODEV && errno != ENOTDIR)
			return -errno;
		*ret_id = VALUE_ABSENT;
		return 0;
	}
	*ret_id = st.st_ino;
	return 0;
}

static bool is_cgroup2(int root_fd)
{
	struct statfs fs;

	return fstatfs(root_fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

static bool lists_memory(const char *controllers)
{
	static const char word[] = "memory", separators[] = " \n";

	for (const char *s = controllers; *s;) {
		size_t len = strcspn(s, separators);

		if (len == strlen(word) && memcmp(s, word, len) == 0)
			return true;
		s += len;
		s += strspn(s, separators);
	}
	return false;
}

/* Why there is nothing of memory in a directory that is there: the controller
 * is not for this group, or the group is being made or removed just now, when
 * its files come after the directory and go before it. */
static int without_memory(struct reader *r)
{
	char buf[SMALL_BYTES];
	int why;
	ssize_t n;

	if (r->len == 0)
		return MEMCG_NO_MEMORY;
	n = read_optional(r, "cgroup.controllers", buf, sizeof(buf), &why);
	if (n < 0)
		return n == -ENODEV ? MEMCG_GONE : (int)n;
	if (r->denied)
		return -EACCES;
	/* Every live group has the file, but a tree made by hand may not. */
	if (why == ENOENT && is_cgroup2(r->root_fd))
		return MEMCG_GONE;
	return n > 0 && lists_memory(buf) ? MEMCG_GONE : MEMCG_NO_MEMORY;
}

static int read_files(struct reader *r, uint64_t mem_total_bytes, struct memcg_sample *s)
{
	int e = read_cheap(r, s);

	if (e == 0 && s->full_depth)
		return read_full(r, mem_total_bytes, s);
	if (e == 0 && !has_events(&s->events))
		e = read_usage(r, "memory.current", &s->current_bytes);
	return e;
}

/* Who the group is gets asked after its files, so that one that was replaced
 * meanwhile counts as new and no delta spans the two. A full sample is also
 * used by itself, so there the answer must be the same before and after. */
static int read_group(struct reader *r, uint64_t mem_total_bytes, struct memcg_sample *s)
{
	uint64_t id_before = VALUE_ABSENT;
	int e, id_e;

	if (s->full_depth) {
		e = find_id(r, &id_before);
		if (e < 0 || id_before == VALUE_ABSENT)
			return e < 0 ? e : MEMCG_GONE;
	}
	e = read_files(r, mem_total_bytes, s);
	id_e = find_id(r, &s->id);
	if (e == -ENODEV)
		return MEMCG_GONE;
	if (id_e < 0)
		return id_e;
	if (s->id == VALUE_ABSENT || (s->full_depth && s->id != id_before))
		return MEMCG_GONE;
	if (e < 0)
		return e;
	if (!value_known(s->current_bytes) && !has_events(&s->events) &&
		!has_events(&s->events_local))
		return without_memory(r);
	return MEMCG_OK;
}

int memcg_sample_read(int root_fd, const char *path, enum memcg_depth depth, uint64_t now_usec,
	uint64_t mem_total_bytes, struct memcg_sample *ret)
{
	struct memcg_sample s;
	struct reader r;
	int e = check_path(path);

	if (e < 0)
		return e;
	r.root_fd = root_fd;
	r.denied = false;
	r.unclear = NULL;
	r.len = strlen(path);
	memcpy(r.path, path, r.len);
	if (r.len > 0)
		r.path[r.len++] = '/';
	memset(&s, 0xff, sizeof(s)); /* VALUE_ABSENT throughout */
	s.now_usec = now_usec;
	s.full_depth = depth == MEMCG_FULL;
	e = read_group(&r, mem_total_bytes, &s);
	s.unclear = r.unclear;
	if (e == MEMCG_OK)
		*ret = s;
	return e;
}

/* A counter's growth; one that fell on the same inode is re-based. Absent on
 * either side says nothing. */
static uint64_t grown(uint64_t before, uint64_t now, unsigned *anomalies)
{
	if (!value_known(before) || !value_known(now))
		return 0;
	if (now < before) {
		++*anomalies;
		return 0;
	}
	return now - before;
}

static int64_t change(uint64_t before, uint64_t now)
{
	return value_known(before) && value_known(now) ? (int64_t)now - (int64_t)before : 0;
}

static double stall_share(
	const struct psi_line *before, const struct psi_line *now, uint64_t dt, unsigned *anomalies)
{
	double share;

	if (!value_known(before->total_usec) || !value_known(now->total_usec))
		return -1;
	share = (double)grown(before->total_usec, now->total_usec, anomalies) / (double)dt;
	return share > 1 ? 1 : share;
}

struct counter {
	size_t sample; /* offset in struct memcg_sample */
	size_t delta;  /* offset in struct memcg_delta */
};
#define COUNTER(field, d) \
	{ offsetof(struct memcg_sample, field), offsetof(struct memcg_delta, d) }
static const struct counter counters[] = {
	COUNTER(pgfault, d_pgfault),
	COUNTER(pgmajfault, d_pgmajfault),
	COUNTER(refault_anon, d_refault_anon),
	COUNTER(refault_file, d_refault_file),
	COUNTER(pgscan, d_pgscan),
	COUNTER(pgsteal, d_pgsteal),
	COUNTER(thp_fault_alloc, d_thp_fault_alloc),
	COUNTER(thp_collapse_alloc, d_thp_collapse_alloc),
	COUNTER(thp_swpout_fallback, d_swpout_fallback),
	COUNTER(pswpin, d_pswpin),
	COUNTER(pswpout, d_pswpout),
	COUNTER(thp_scanned, d_thp_scanned),
	COUNTER(thp_young, d_thp_young),
	COUNTER(thp_split_avoided, d_split_avoided),
	COUNTER(thp_size_limited, d_size_limited),
	COUNTER(margin_anon, d_margin_anon),
	COUNTER(margin_swpin, d_margin_swpin),
	COUNTER(margin_shmem, d_margin_shmem),
	COUNTER(margin_collapse, d_margin_collapse),
	COUNTER(usage_usec, d_usage_usec),
	COUNTER(user_usec, d_user_usec),
	COUNTER(system_usec, d_system_usec),
};

static uint64_t sample_field(const struct memcg_sample *s, size_t offset)
{
	return *(const uint64_t *)(const void *)((const char *)s + offset);
}

/* This level's own events where both samples have them, else the hierarchical
 * ones; never a sum of the two. */
static void delta_events(
	const struct memcg_sample *prev, const struct memcg_sample *cur, struct memcg_delta *d)
{
	bool local = has_events(&prev->events_local) && has_events(&cur->events_local);
	const struct memcg_events *a = local ? &prev->events_local : &prev->events;
	const struct memcg_events *b = local ? &cur->events_local : &cur->events;

	d->d_high = grown(a->high, b->high, &d->anomalies);
	d->d_max = grown(a->max, b->max, &d->anomalies);
	d->d_oom = grown(a->oom, b->oom, &d->anomalies);
	d->d_oom_kill = grown(a->oom_kill, b->oom_kill, &d->anomalies);
	d->d_oom_victim = local ? d->d_oom_kill : 0;
}

int memcg_delta(const struct memcg_sample *prev, const struct memcg_sample *cur,
	struct memcg_delta *ret)
{
	struct memcg_delta d = { 0 };

	if (prev->id != cur->id || cur->now_usec <= prev->now_usec)
		return -ESTALE;
	d.dt_usec = cur->now_usec - prev->now_usec;
	d.some = stall_share(&prev->psi.some, &cur->psi.some, d.dt_usec, &d.anomalies);
	d.full = stall_share(&prev->psi.full, &cur->psi.full, d.dt_usec, &d.anomalies);
	delta_events(prev, cur, &d);
	for (size_t i = 0; i < ELEMENTSOF(counters); i++)
		*(uint64_t *)(void *)((char *)&d + counters[i].delta) =
			grown(sample_field(prev, counters[i].sample),
				sample_field(cur, counters[i].sample), &d.anomalies);
	d.d_swap_fail = grown(prev->swap_events_max, cur->swap_events_max, &d.anomalies) +
			grown(prev->swap_events_fail, cur->swap_events_fail, &d.anomalies);
	d.d_current_bytes = change(prev->current_bytes, cur->current_bytes);
	d.d_anon_bytes = change(prev->anon, cur->anon);
	d.d_anon_thp_bytes = change(prev->anon_thp, cur->anon_thp);
	d.d_swap_bytes = change(prev->swap_current_bytes, cur->swap_current_bytes);
	*ret = d;
	return 0;
}

uint64_t memcg_margin_with_cache(const struct memcg_sample *s)
{
	uint64_t busy, room;

	if (!value_known(s->margin_bytes) || !value_known(s->inactive_file))
		return s->margin_bytes;
	busy = value_or(s->file_dirty, 0) + value_or(s->file_writeback, 0);
	room = s->margin_bytes + value_sub(s->inactive_file, busy);
	return value_known(room) ? room : VALUE_MAX;
}

uint64_t memcg_slack_bytes(const struct memcg_sample *s)
{
	uint64_t rest;

	if (!value_known(s->current_bytes) || !value_known(s->anon) || !value_known(s->file) ||
		!value_known(s->kernel))
		return VALUE_ABSENT;
	rest = value_sub(s->current_bytes, s->anon);
	rest = value_sub(rest, s->file);
	return value_sub(rest, s->kernel);
}

double memcg_thp_share(const struct memcg_sample *s)
{
	if (!value_known(s->anon) || !value_known(s->anon_thp))
		return -1;
	if (s->anon_thp >= s->anon)
		return s->anon_thp > 0 ? 1 : 0;
	return (double)s->anon_thp / (double)s->anon;
}
