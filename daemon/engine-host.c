/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine as a whole: its files are read, what is not understood is said,
 * and the host rules of the loop get the rest.
 */
#include <errno.h>
#include <string.h>

#include "engine-internal.h"
#include "log.h"

static uint64_t read_number(int dirfd, const char *path)
{
	char buf[64];
	uint64_t v;

	if (parse_read_at(dirfd, path, buf, sizeof(buf)) < 0 || parse_u64(buf, &v) < 0)
		return VALUE_ABSENT;
	return v;
}

static uint64_t dying_cgroups(const struct engine *e)
{
	static const struct flat_key key = { "nr_dying_descendants", 0 };
	char buf[1024];
	uint64_t v;

	if (e->cg_fd < 0 || parse_read_at(e->cg_fd, "cgroup.stat", buf, sizeof(buf)) < 0)
		return VALUE_ABSENT;
	parse_flat_keyed(buf, &key, 1, &v);
	return v;
}

static void note_swap(struct engine *e, enum swap_state was)
{
	enum swap_state is = e->loop->host.swap;

	if (is != was && (is == SWAP_NONE || was == SWAP_NONE || is == SWAP_FULL || was == SWAP_FULL) &&
		was != SWAP_UNKNOWN)
		log_info("swap: %s -> %s", swap_state_to_string(was), swap_state_to_string(is));
}

static void degrade_if(struct engine *e, bool yes, const char *key, const char *text)
{
	if (yes)
		engine_degrade(e, key, "%s", text);
	else
		engine_undegrade(e, key);
}

/* The machine's own files: what is not understood is said once, and its absence is lived with. */
void engine_look_at_host(struct engine *e, uint64_t now_usec)
{
	struct host_sample *h = &e->host_now;
	bool proc = host_sample_read(e->root_fd, now_usec, h) == 0;
	enum psi_state psi = e->caps.psi;

	if (!proc) {
		memset(h, 0xff, sizeof(*h)); /* everything VALUE_ABSENT */
		h->now_usec = now_usec;
		h->psi_errno = ENOENT;
	}
	degrade_if(e, proc && !value_known(h->mem_total_kb), "meminfo",
		"/proc/meminfo cannot be read or is not understood: the machine's memory and swap are not known");
	degrade_if(e, proc && !value_known(h->pgfault), "vmstat",
		"/proc/vmstat cannot be read or is not understood: the machine's faults and reclaim are not seen");
	if (psi == PSI_OK && h->psi_errno == EINVAL)
		e->caps.psi = PSI_UNCLEAR;
	else if (psi == PSI_UNCLEAR && h->psi_errno == 0)
		e->caps.psi = PSI_OK;
	if (e->caps.psi == PSI_OK)
		engine_undegrade(e, "psi");
	else if (psi == PSI_OK)
		engine_degrade_capabilities(e);
}

void engine_sample_host(struct engine *e, uint64_t now_usec)
{
	struct thp_stats stats[THP_SIZES_MAX];
	const struct plan *p = &e->loop->plan;
	enum swap_state swap = e->loop->host.swap;
	struct hostrules_input in = {
		.host = &e->host_now,
		.stats = stats,
		.full_scans = read_number(e->thp_fd, "khugepaged/full_scans"),
		.pages_collapsed = read_number(e->thp_fd, "khugepaged/pages_collapsed"),
		.dying_cgroups = dying_cgroups(e),
	};

	e->dying_cgroups = in.dying_cgroups;
	engine_look_at_host(e, now_usec);
	for (unsigned i = 0; i < p->n_sizes; i++) {
		memset(&stats[i], 0xff, sizeof(stats[i])); /* everything VALUE_ABSENT */
		/* Nothing can have happened to a size that was off all along. */
		if (e->loop->arbiter.size[i].touched ||
			thp_effective(p->sizes[i].baseline, p->top) > THP_NEVER ||
			e->loop->arbiter.size[i].level == PLAN_RAISED)
			thp_stats_read(e->thp_fd, p->sizes[i].size_kb, &stats[i]);
	}
	loop_observe_host(e->loop, &in);
	note_swap(e, swap);
}

int engine_sample_machine(const struct engine *e, struct memcg_sample *s)
{
	const struct host_sample *h = &e->host_now;

	memset(s, 0xff, sizeof(*s)); /* everything VALUE_ABSENT */
	s->now_usec = h->now_usec;
	s->id = 1;
	s->full_depth = true;
	s->unclear = NULL;
	s->psi_off = h->psi_errno != 0;
	s->psi_errno = h->psi_errno;
	s->psi = h->psi;
	s->current_bytes = value_sub(h->mem_total_kb, h->mem_available_kb) * 1024;
	s->limit_bytes = h->mem_total_kb * 1024;
	s->margin_bytes = h->mem_available_kb * 1024; /* page cache that can go is in it already */
	s->swap_current_bytes = value_sub(h->swap_total_kb, h->swap_free_kb) * 1024;
	s->pgfault = h->pgfault;
	s->pgmajfault = h->pgmajfault;
	s->refault_anon = h->refault_anon;
	s->thp_fault_alloc = h->thp_fault_alloc;
	s->thp_collapse_alloc = h->thp_collapse_alloc;
	/* There is no limit to hit; direct reclaim is the nearest thing. */
	s->events.max = h->allocstall;
	return MEMCG_OK;
}
