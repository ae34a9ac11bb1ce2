/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "own.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *const own_file_name[OWN_FILES] = {
	[OWN_MAX_SIZE] = "memory.thp.max_size",
	[OWN_MAX_PTES_NONE] = "memory.thp.max_ptes_none",
	[OWN_MARGIN] = "memory.thp.margin",
};

/* No folio is larger, no page smaller. */
#define SIZE_MAX_BYTES (UINT64_C(1) << 40)
#define SIZE_MIN_BYTES 4096

/* The word for "no value of its own", which no number exceeds. */
static const char *const unbounded[OWN_FILES] = { "max", "inherit", "inherit" };

static uint64_t number_of(enum own_file f, const char *value)
{
	uint64_t v;

	if (!strcmp(value, unbounded[f]))
		return VALUE_MAX;
	return parse_u64(value, &v) == 0 ? v : VALUE_ABSENT;
}

bool own_value_valid(enum own_file f, const char *value)
{
	size_t len = strlen(value);
	uint64_t n;

	if (!strcmp(value, unbounded[f]) || (f == OWN_MARGIN && !strcmp(value, "auto")))
		return true;
	if (len >= OWN_VALUE_LEN || strspn(value, "0123456789") != len || (value[0] == '0' && len > 1) ||
		parse_u64(value, &n) < 0)
		return false;
	if (f == OWN_MAX_SIZE)
		return n >= SIZE_MIN_BYTES && n <= SIZE_MAX_BYTES && (n & (n - 1)) == 0;
	return n <= INT_MAX;
}

void own_set(struct own *o, const struct own_values *base, const struct own_values *stands)
{
	for (enum own_file f = 0; f < OWN_FILES; f++)
		own_set_file(o, f, base, stands);
}

void own_set_file(struct own *o, enum own_file f, const struct own_values *base, const struct own_values *stands)
{
	memcpy(o->base.value[f], base->value[f], OWN_VALUE_LEN);
	memcpy(o->stands.value[f], stands->value[f], OWN_VALUE_LEN);
	memcpy(o->want.value[f], stands->value[f], OWN_VALUE_LEN);
	o->reason[f] = REASON_START_VALUES;
}

static void want(struct own *o, enum own_file f, const char *value, enum reason r)
{
	if (!*o->base.value[f])
		value = "";
	snprintf(o->want.value[f], OWN_VALUE_LEN, "%.19s", value);
	o->reason[f] = r;
}

/* @v where it is below the start value, else the start value. */
static void want_below(struct own *o, enum own_file f, uint64_t v, enum reason r)
{
	char text[24];

	if (v >= number_of(f, o->base.value[f])) {
		/* It is not the policy that holds it down. */
		if (r == REASON_POLICY_LIMIT && v > number_of(f, o->base.value[f]))
			r = REASON_START_VALUES;
		want(o, f, o->base.value[f], r);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, v);
	want(o, f, text, r);
}

static void decide_ptes(struct own *o, const struct plan *p, const struct ctl_wish *w,
	uint64_t ptes_max)
{
	uint64_t v = w->ptes == CTL_PTES_FULL ? 0 : w->ptes == CTL_PTES_RECENT ? p->ptes_recent : VALUE_MAX;
	enum reason r = w->ptes == CTL_PTES_FULL     ? REASON_NEAR_FULL :
			w->ptes == CTL_PTES_RECENT ? REASON_RECENT_PRESSURE : REASON_START_VALUES;
	/* What holds without us; the kernel takes the smaller of the group's value and the global one. */
	uint64_t before = value_min(number_of(OWN_MAX_PTES_NONE, o->base.value[OWN_MAX_PTES_NONE]), p->ptes_base);

	if (w->reason == REASON_KHUGEPAGED_BLOAT && !v)
		r = REASON_KHUGEPAGED_BLOAT;
	/* A start value that meets the policy's bound stays, whatever the kernel makes of it. */
	if (value_known(ptes_max) && ptes_max < value_min(v, before)) {
		v = p->ptes_two_values ? 0 : ptes_max;
		r = REASON_POLICY_LIMIT;
	}
	if (!value_known(p->ptes_base) || v >= p->ptes_base)
		v = VALUE_MAX;
	want_below(o, OWN_MAX_PTES_NONE, v, r);
}

static uint64_t size_kb_of(const struct config_size *size, const struct plan *p)
{
	uint64_t smallest = p->n_rungs > 1 ? p->rung_max_kb[1] : p->pmd_kb;

	return config_size_kb(size, p->pmd_kb, smallest);
}

struct own_limits own_limits_of(const struct config_policy *policy, const struct plan *p)
{
	struct own_limits l = { VALUE_ABSENT, VALUE_ABSENT, VALUE_ABSENT };

	if (!policy)
		return l;
	if (policy->has_min_size)
		l.min_kb = size_kb_of(&policy->min_size, p);
	if (policy->has_max_size)
		l.max_kb = size_kb_of(&policy->max_size, p);
	l.ptes_max = policy->max_ptes_none;
	return l;
}

/* The wish may be older than the policy: whether that sets the size is seen here. */
static void decide_size(struct own *o, const struct plan *p, const struct ctl_wish *w, const struct own_limits *l)
{
	/* A small group stays at its policy's smallest size. */
	uint64_t max_kb = w->reason == REASON_SMALL_GROUP ? VALUE_ABSENT : l->max_kb;
	uint64_t kb = plan_rung_kb(p, w->rung, l->min_kb, max_kb);
	bool lowered = kb < plan_rung_kb(p, w->rung, VALUE_ABSENT, VALUE_ABSENT) && w->rung > plan_rung_for(p, max_kb);
	bool kept = kb > plan_rung_kb(p, w->rung, VALUE_ABSENT, max_kb);
	enum reason r = w->reason;

	if (lowered || kept)
		r = REASON_POLICY_LIMIT;
	else if (kb == VALUE_MAX && r == REASON_POLICY_LIMIT)
		r = REASON_START_VALUES;
	if (kb < p->page_kb)
		kb = p->page_kb;
	want_below(o, OWN_MAX_SIZE, kb == VALUE_MAX ? VALUE_MAX : kb * 1024, r);
}

void own_decide(struct own *o, const struct plan *p, const struct ctl_wish *w,
	const struct own_limits *limits)
{
	decide_size(o, p, w, limits);
	decide_ptes(o, p, w, limits->ptes_max);
	if (w->gate_open && !strcmp(o->base.value[OWN_MARGIN], unbounded[OWN_MARGIN]))
		want(o, OWN_MARGIN, "0", w->gate_reason);
	else
		want(o, OWN_MARGIN, o->base.value[OWN_MARGIN], w->gate_reason);
}

bool own_differs(const struct own *o)
{
	for (unsigned f = 0; o->present && f < OWN_FILES; f++)
		if (strcmp(o->want.value[f], o->stands.value[f]) != 0)
			return true;
	return false;
}

/* An open gate lets larger folios in, as a larger max_size does. */
static bool goes_up(const struct own *o, enum own_file f)
{
	if (f == OWN_MARGIN)
		return !strcmp(o->want.value[f], "0") && strcmp(o->stands.value[f], "0") != 0;
	return number_of(f, o->want.value[f]) > number_of(f, o->stands.value[f]);
}

void own_hold_back(struct own *o)
{
	for (unsigned f = 0; f < OWN_FILES; f++) {
		if (!goes_up(o, f))
			continue;
		memcpy(o->want.value[f], o->stands.value[f], OWN_VALUE_LEN);
		o->reason[f] = REASON_RATE_LIMITED;
	}
}
