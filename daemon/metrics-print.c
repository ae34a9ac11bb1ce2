/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text format of Prometheus. Names: base units, _total for what only grows;
 * a label's value may be any text; what a terminal would obey is written as \xNN.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "history.h"
#include "metrics.h"

#define GROUP "cgroup"

static const json_t *get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static const char *word(const json_t *object, const char *key)
{
	return json_string_value(get(object, key));
}

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(FILE *f, const char *before, const char *name, const char *value)
{
	fprintf(f, "%s%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", f);
		else if (*value == '\\' || *value == '"')
			fprintf(f, "\\%c", *value);
		else if ((unsigned char)*value < 0x20 || *value == 0x7f) /* as what is not UTF-8 */
			fprintf(f, "\\\\x%02x", (unsigned char)*value);
		else
			fputc(*value, f);
	}
	fputc('"', f);
}

/* Integers as they are while no unit has to be changed. */
static void number(FILE *f, const json_t *v, double scale)
{
	if (json_is_integer(v) && scale == 1)
		fprintf(f, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
	else
		fprintf(f, " %.15g\n", json_number_value(v) * scale);
}

static bool is_number(const json_t *v)
{
	return json_is_number(v);
}

/* ---- the daemon ---- */

static void print_daemon(FILE *f, const json_t *facts)
{
	static const char *const states[] = {"active", "dry-run", "held", "degraded", "off"};
	const char *version = word(facts, "version"), *release = word(facts, "release");
	const char *state = word(facts, "state");

	head(f, "mthpd_build_info", "gauge", "Versions of mthpd and of the running kernel, as labels.");
	label(f, "mthpd_build_info{", "version", version ? version : "");
	label(f, ",", "kernel", release ? release : "");
	fputs("} 1\n", f);
	head(f, "mthpd_state", "gauge", "1 for the state that mthpd is in.");
	for (size_t i = 0; i < ELEMENTSOF(states); i++)
		fprintf(f, "mthpd_state{state=\"%s\"} %d\n", states[i], state && !strcmp(state, states[i]));
	head(f, "mthpd_degraded_reasons", "gauge", "Things that mthpd has to do without.");
	fprintf(f, "mthpd_degraded_reasons %zu\n", json_array_size(get(facts, "degraded")));
}

static void print_counters(FILE *f, const json_t *facts)
{
	static const struct {
		const char *key, *name, *help;
		double scale;
	} counters[] = {
		{"decisions", "mthpd_decisions_total", "Ticks in which at least one switch was changed.", 1},
		{"writes", "mthpd_writes_total", "Writes to the kernel's switches.", 1},
		{"write_errors", "mthpd_write_errors_total", "Writes that the kernel refused.", 1},
		{"foreign_changes", "mthpd_foreign_changes_total", "Switches changed by somebody else.", 1},
		{"cgroups_seen", "mthpd_cgroups_seen_total", "Groups that became units of control.", 1},
		{"wakeups", "mthpd_wakeups_total", "Times that the loop woke up.", 1},
		{"cpu_usec", "mthpd_cpu_seconds_total", "CPU time of mthpd.", 1e-6},
	};

	for (size_t i = 0; i < ELEMENTSOF(counters); i++) {
		const json_t *v = get(get(facts, "counters"), counters[i].key);

		if (!is_number(v))
			continue;
		head(f, counters[i].name, "counter", counters[i].help);
		fputs(counters[i].name, f);
		number(f, v, counters[i].scale);
	}
}

static void print_reasons(FILE *f, const json_t *facts)
{
	json_t *reasons = json_object_get(get(facts, "changes"), "reasons"), *n;
	const char *reason;

	if (json_object_size(reasons) == 0)
		return;
	head(f, "mthpd_switch_changes_total", "counter", "Changes of switches by reason.");
	json_object_foreach(reasons, reason, n)
	{
		label(f, "mthpd_switch_changes_total{", "reason", reason);
		fputc('}', f);
		number(f, n, 1);
	}
}

/* ---- sizes ---- */

static const char *mode_value(const char *mode)
{
	return !strcmp(mode, "always") ? "2" : !strcmp(mode, "madvise") ? "1" : "0";
}

static void print_size_modes(FILE *f, const json_t *facts)
{
	static const char *const kinds[] = {"baseline", "actual", "wanted"};
	json_t *sizes = json_object_get(facts, "sizes"), *size;
	size_t i;

	head(f, "mthpd_size_mode_info", "gauge", "What a size's switch held at start, holds, and should hold.");
	json_array_foreach(sizes, i, size)
	{
		for (size_t k = 0; k < ELEMENTSOF(kinds); k++) {
			if (!word(size, kinds[k]))
				continue;
			fprintf(f, "mthpd_size_mode_info{size_kb=\"%" JSON_INTEGER_FORMAT "\",kind=\"%s\"",
				json_integer_value(get(size, "size_kb")), kinds[k]);
			label(f, ",", "mode", word(size, kinds[k]));
			fputs("} 1\n", f);
		}
	}
	head(f, "mthpd_size_mode", "gauge", "Mode of a size in force: 0 never, 1 madvise, 2 always.");
	json_array_foreach(sizes, i, size)
		if (word(size, "effective"))
			fprintf(f, "mthpd_size_mode{size_kb=\"%" JSON_INTEGER_FORMAT "\"} %s\n",
				json_integer_value(get(size, "size_kb")), mode_value(word(size, "effective")));
}

/* What the kernel prints as nr_ is a number of folios now, the rest only grows. */
static void print_stat(FILE *f, const char *stat, json_t *by_size)
{
	bool gauge = !strncmp(stat, "nr_", 3);
	char name[128], help[192];
	const char *kb;
	json_t *v;

	snprintf(name, sizeof(name), "mthpd_size_%s%s", gauge ? stat + 3 : stat, gauge ? "_folios" : "_total");
	snprintf(help, sizeof(help), "The kernel's hugepages-*kB/stats/%s.", stat);
	head(f, name, gauge ? "gauge" : "counter", help);
	json_object_foreach(by_size, kb, v)
	{
		if (!is_number(v))
			continue;
		fprintf(f, "%s{size_kb=\"%s\"}", name, kb);
		number(f, v, 1);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of their names: that of a directory changes. */
static void print_stats(FILE *f, const json_t *facts)
{
	json_t *stats = json_object_get(facts, "stats"), *by_size;
	const char **names = calloc(json_object_size(stats) + 1, sizeof(*names)), *name;
	size_t n = 0;

	if (!names)
		return;
	json_object_foreach(stats, name, by_size)
		names[n++] = name;
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++)
		print_stat(f, names[i], json_object_get(stats, names[i]));
	free(names);
}

/* ---- the machine ---- */

static void print_machine(FILE *f, const json_t *facts)
{
	static const struct {
		const char *object, *key, *name, *type, *help;
		double scale;
	} values[] = {
		{"khugepaged", "max_ptes_none", "mthpd_khugepaged_max_ptes_none", "gauge",
			"Holes that khugepaged may fill in one PMD.", 1},
		{"khugepaged", "full_scans", "mthpd_khugepaged_full_scans_total", "counter",
			"Rounds of khugepaged over all memory.", 1},
		{"khugepaged", "pages_collapsed", "mthpd_khugepaged_collapsed_total", "counter",
			"Large folios that khugepaged made.", 1},
		{"swap", "size_kb", "mthpd_swap_size_bytes", "gauge", "Size of all swap devices.", 1024},
		{"swap", "used_kb", "mthpd_swap_used_bytes", "gauge", "Used of all swap devices.", 1024},
		{"rest", "groups", "mthpd_cgroups_rest", "gauge", "Groups without series of their own.", 1},
		{"rest", "anon_bytes", "mthpd_cgroups_rest_anon_bytes", "gauge",
			"Anonymous memory of the groups without series of their own.", 1},
		{"rest", "unread", "mthpd_cgroups_unread", "gauge",
			"Groups whose memory was not read, for lack of time or of the file.", 1},
		{"changes", "others", "mthpd_cgroups_rest_changes_total", "counter",
			"Changes of switches caused by groups that are not counted one by one.", 1},
	};

	for (size_t i = 0; i < ELEMENTSOF(values); i++) {
		const json_t *v = get(get(facts, values[i].object), values[i].key);

		if (!is_number(v))
			continue;
		head(f, values[i].name, values[i].type, values[i].help);
		fputs(values[i].name, f);
		number(f, v, values[i].scale);
	}
}

/* ---- groups ---- */

static const struct group_value {
	const char *key, *name, *type, *help;
	double scale;
} group_values[] = {
	{"anon_bytes", "mthpd_cgroup_anon_bytes", "gauge", "Anonymous memory of the group.", 1},
	{"anon_thp_bytes", "mthpd_cgroup_anon_thp_bytes", "gauge", "Anonymous memory in PMD-sized folios.", 1},
	{"current_bytes", "mthpd_cgroup_memory_bytes", "gauge", "All memory charged to the group.", 1},
	{"limit_bytes", "mthpd_cgroup_limit_bytes", "gauge", "The smallest limit of the group and its ancestors.", 1},
	{"margin_bytes", "mthpd_cgroup_margin_bytes", "gauge", "Room before the nearest limit.", 1},
	{"some", "mthpd_cgroup_pressure_some_ratio", "gauge", "Share of the last tick in which some task stalled.", 1},
	{"full", "mthpd_cgroup_pressure_full_ratio", "gauge", "Share of the last tick in which all tasks stalled.", 1},
	{"some_usec", "mthpd_cgroup_stall_some_seconds_total", "counter", "Time in which some task stalled on memory.",
		1e-6},
	{"full_usec", "mthpd_cgroup_stall_full_seconds_total", "counter", "Time in which all tasks stalled on memory.",
		1e-6},
	{"refault_anon", "mthpd_cgroup_refaulted_anon_pages_total", "counter", "Anonymous pages that came back from swap.",
		1},
	{"oom_kills", "mthpd_cgroup_oom_kills_total", "counter", "Tasks killed for lack of memory.", 1},
	{"rung", "mthpd_cgroup_rung", "gauge", "Rung of the ladder of sizes; 0 is small pages only.", 1},
	{"max_size_kb", "mthpd_cgroup_largest_size_bytes", "gauge", "Largest folio that the group can get.", 1024},
	/* of groups with files of their own */
	{"own.density", "mthpd_cgroup_density_ratio", "gauge", "Share of its large folios that the group uses.", 1},
	{"gate_open", "mthpd_cgroup_gate_open", "gauge", "1: large folios are let in although it is nearly full.",
		1},
	{"own.counters.margin_anon", "mthpd_cgroup_margin_refused_faults_total", "counter",
		"Large folios refused at faults for lack of room.", 1},
	{"own.counters.margin_swpin", "mthpd_cgroup_margin_refused_swapins_total", "counter",
		"Large folios refused at swap-in for lack of room.", 1},
	{"own.counters.size_limited", "mthpd_cgroup_size_limited_total", "counter",
		"Large folios refused because of memory.thp.max_size.", 1},
	{"own.counters.split_avoided", "mthpd_cgroup_splits_avoided_total", "counter",
		"Large folios kept whole because swap could not take the pieces.", 1},
	{"own.counters.pswpin", "mthpd_cgroup_swapped_in_pages_total", "counter", "Pages swapped in.", 1},
	{"own.counters.pswpout", "mthpd_cgroup_swapped_out_pages_total", "counter", "Pages swapped out.", 1},
};

/* "a.b" is b of a. */
static const json_t *find(const json_t *object, const char *key)
{
	const char *dot = strchr(key, '.');
	char first[32];

	if (!dot)
		return get(object, key);
	snprintf(first, sizeof(first), "%.*s", (int)(dot - key), key);
	return find(get(object, first), dot + 1);
}

static void print_group_value(FILE *f, const json_t *groups, const struct group_value *g)
{
	bool headed = false;

	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i), *v = find(group, g->key);

		if (!is_number(v) || !word(group, "path") || json_number_value(v) < 0)
			continue;
		if (!headed)
			head(f, g->name, g->type, g->help);
		headed = true;
		fprintf(f, "%s{", g->name);
		label(f, "", GROUP, word(group, "path"));
		fputc('}', f);
		number(f, v, g->scale);
	}
}

static void print_group_states(FILE *f, const json_t *groups)
{
	if (json_array_size(groups) == 0)
		return;
	head(f, "mthpd_cgroup_state_info", "gauge", "State of the group's controller, as a label, with its reason.");
	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i);

		if (!word(group, "path") || !word(group, "state") || !word(group, "reason"))
			continue;
		label(f, "mthpd_cgroup_state_info{", GROUP, word(group, "path"));
		label(f, ",", "state", word(group, "state"));
		label(f, ",", "reason", word(group, "reason"));
		fputs("} 1\n", f);
	}
}

/* Of the groups that are shown; 0 for one that has caused no change. A long path
 * was counted under its end. */
static void print_group_changes(FILE *f, const json_t *facts)
{
	const json_t *groups = get(facts, "groups"), *counted = get(get(facts, "changes"), "cgroups");

	if (json_array_size(groups) == 0)
		return;
	head(f, "mthpd_cgroup_changes_total", "counter", "Changes of switches that the group caused.");
	for (size_t i = 0; i < json_array_size(groups); i++) {
		const char *path = word(json_array_get(groups, i), "path");
		struct decision d;

		if (!path)
			continue;
		history_set_group(&d, path);
		label(f, "mthpd_cgroup_changes_total{", GROUP, path);
		fprintf(f, "} %" JSON_INTEGER_FORMAT "\n", json_integer_value(get(counted, d.group)));
	}
}

void metrics_print(FILE *f, const json_t *facts)
{
	const json_t *groups = get(facts, "groups");

	print_daemon(f, facts);
	print_counters(f, facts);
	print_reasons(f, facts);
	print_size_modes(f, facts);
	print_stats(f, facts);
	print_machine(f, facts);
	for (size_t i = 0; i < ELEMENTSOF(group_values); i++)
		print_group_value(f, groups, &group_values[i]);
	print_group_states(f, groups);
	print_group_changes(f, facts);
}
