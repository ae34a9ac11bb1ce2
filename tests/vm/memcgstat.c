// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * memcgstat: samples of memory cgroups as JSON lines, cheap enough for icount.
 *
 *   memcgstat [--msec=1000] [--count=N] [--groups-only] CGROUPDIR...
 *
 * Each tick prints one object per group: `t` (CLOCK_MONOTONIC, seconds), cgroup,
 * the group's counters (totals since its start), and the system's: swap-in and
 * -out, the modes of the sizes, and per size the statistics that are not 0
 * (not with --groups-only: many groups). A
 * reader of memory.stat makes the kernel flush its statistics, which changes
 * reclaim; runs that are compared must therefore all have one, daemon or not.
 * A file that is missing is missing from the object. Ends at SIGTERM, after one
 * last sample.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THP "/sys/kernel/mm/transparent_hugepage"

static volatile sig_atomic_t stopped;
static bool groups_only;

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

static bool read_file(const char *dir, const char *name, char *buffer, size_t size)
{
	char path[512];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, buffer, size - 1);
	close(fd);
	if (got < 0)
		return false;
	buffer[got] = '\0';
	return true;
}

/* Print the chosen keys of a flat-keyed file, named PREFIX + key. */
static void flat_keys(const char *dir, const char *file, const char *prefix,
		      const char *const *keys)
{
	static char buffer[32768];
	char *rest = buffer, *line;

	if (!read_file(dir, file, buffer, sizeof(buffer)))
		return;
	while ((line = strsep(&rest, "\n"))) {
		char *value = strchr(line, ' ');

		if (!value)
			continue;
		*value++ = '\0';
		for (size_t i = 0; keys[i]; i++)
			if (strcmp(line, keys[i]) == 0)
				printf(",\"%s%s\":%s", prefix, line, value);
	}
}

static void single_value(const char *dir, const char *file, const char *key)
{
	char buffer[64];

	if (!read_file(dir, file, buffer, sizeof(buffer)))
		return;
	buffer[strcspn(buffer, "\n")] = '\0';
	if (strcmp(buffer, "max") == 0)
		printf(",\"%s\":null", key);
	else
		printf(",\"%s\":%s", key, buffer);
}

static void word(const char *dir, const char *file, const char *key)
{
	char buffer[64];

	if (!read_file(dir, file, buffer, sizeof(buffer)))
		return;
	buffer[strcspn(buffer, "\n")] = '\0';
	printf(",\"%s\":\"%s\"", key, buffer);
}

static void pressure(const char *dir)
{
	char buffer[512], *some, *full;

	if (!read_file(dir, "memory.pressure", buffer, sizeof(buffer)))
		return;
	some = strstr(buffer, "total=");
	full = some ? strstr(some + 1, "total=") : NULL;
	if (some && full)
		printf(",\"some_usec\":%llu,\"full_usec\":%llu",
		       strtoull(some + 6, NULL, 10), strtoull(full + 6, NULL, 10));
}

static void size_stats(const char *size_dir)
{
	char dir[600], buffer[64];
	DIR *stats;
	struct dirent *entry;

	snprintf(dir, sizeof(dir), "%s/stats", size_dir);
	stats = opendir(dir);
	if (!stats)
		return;
	while ((entry = readdir(stats)))
		if (entry->d_name[0] != '.' &&
		    read_file(dir, entry->d_name, buffer, sizeof(buffer)) && buffer[0] != '0') {
			buffer[strcspn(buffer, "\n")] = '\0';
			printf(",\"%s\":%s", entry->d_name, buffer);
		}
	closedir(stats);
}

static void sizes(void)
{
	bool first = true;

	printf(",\"sizes\":{");
	for (int kb = 8; kb <= 2048; kb *= 2) {
		char dir[256], mode[128], *open, *close;

		snprintf(dir, sizeof(dir), THP "/hugepages-%dkB", kb);
		if (!read_file(dir, "enabled", mode, sizeof(mode)))
			continue;
		open = strchr(mode, '[');
		close = strchr(mode, ']');
		if (!open || !close)
			continue;
		*close = '\0';
		printf("%s\"%d\":{\"mode\":\"%s\"", first ? "" : ",", kb, open + 1);
		size_stats(dir);
		printf("}");
		first = false;
	}
	printf("}");
}

static void sample(const char *dir)
{
	static const char *const stat_keys[] = {
		"anon", "file", "shmem", "inactive_file", "active_file", "file_dirty",
		"file_writeback", "anon_thp", "pgfault", "pgmajfault",
		"workingset_refault_anon", "workingset_refault_file", "pgscan", "pgsteal",
		"pgscan_direct", "pgsteal_direct", "pswpin", "pswpout", "thp_fault_alloc",
		"thp_swpout", "thp_swpout_fallback", "thp_collapse_alloc",
		"thp_reclaim_scanned", "thp_reclaim_young", "thp_margin_fallback",
		"thp_size_limited", "thp_swpout_split_avoided", NULL };
	/* Only on a kernel where each group has its own largest folio. */
	static const char *const thp_keys[] = { "margin_anon", "margin_swpin", "margin_shmem",
						"margin_collapse", "swpout_split_avoided", NULL };
	static const char *const event_keys[] = { "low", "high", "max", "oom", "oom_kill", NULL };
	static const char *const cpu_keys[] = { "usage_usec", "user_usec", "system_usec", NULL };
	static const char *const vm_keys[] = {
		"pgfault", "pgmajfault", "pswpin", "pswpout", "thp_fault_alloc",
		"thp_fault_fallback", "thp_fault_fallback_charge", "thp_split_page", NULL };
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	printf("{\"t\":%.6f,\"cgroup\":\"%s\"", (double)ts.tv_sec + (double)ts.tv_nsec / 1e9, dir);
	single_value(dir, "memory.current", "current");
	single_value(dir, "memory.max", "max");
	single_value(dir, "memory.swap.current", "swap_current");
	flat_keys(dir, "memory.stat", "", stat_keys);
	flat_keys(dir, "memory.events", "events_", event_keys);
	flat_keys(dir, "memory.thp.events", "thp_events_", thp_keys);
	word(dir, "memory.thp.max_size", "thp_max_size");
	word(dir, "memory.thp.margin", "thp_margin");
	word(dir, "memory.thp.max_ptes_none", "thp_max_ptes_none");
	flat_keys(dir, "cpu.stat", "cpu_", cpu_keys);
	pressure(dir);
	if (!groups_only) {
		flat_keys("/proc", "vmstat", "vm_", vm_keys);
		sizes();
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop };
	long msec = 1000, count = 0, done = 0;
	struct timespec next;
	int first;

	for (first = 1; first < argc && argv[first][0] == '-'; first++) {
		if (sscanf(argv[first], "--msec=%ld", &msec) == 1 && msec > 0)
			continue;
		if (sscanf(argv[first], "--count=%ld", &count) == 1 && count > 0)
			continue;
		if (strcmp(argv[first], "--groups-only") == 0) {
			groups_only = true;
			continue;
		}
		fprintf(stderr, "memcgstat: bad option %s\n", argv[first]);
		return 2;
	}
	if (first == argc) {
		fprintf(stderr, "usage: memcgstat [--msec=N] [--count=N] [--groups-only] CGROUPDIR...\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		for (int i = first; i < argc; i++)
			sample(argv[i]);
		fflush(stdout);
		if (stopped || (count && ++done == count))
			return 0;
		next.tv_nsec += msec % 1000 * 1000000;
		next.tv_sec += msec / 1000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
