// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * writewatch: says which files below a directory are written, and when.
 *
 *   writewatch DIR
 *
 * Prints {"t":..,"event":"ready"} once everything is watched, then one line for
 * each write, {"t":..,"event":"write","file":"DIR/.."}, also where the value
 * stays the same. `t` is CLOCK_MONOTONIC in seconds. Works on sysfs, where a
 * write by a process is seen and a change by the kernel is not.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#define MAX_DIRS 256

static char *dirs[MAX_DIRS]; /* by watch descriptor */

static void die(const char *what)
{
	fprintf(stderr, "writewatch: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void print_event(const char *event, const char *dir, const char *name)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	printf("{\"t\":%.6f,\"event\":\"%s\"", (double)ts.tv_sec + (double)ts.tv_nsec / 1e9, event);
	if (dir)
		printf(",\"file\":\"%s/%s\"", dir, name);
	printf("}\n");
	fflush(stdout);
}

static void watch_tree(int fd, const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	int id = inotify_add_watch(fd, path, IN_MODIFY | IN_ONLYDIR);

	if (!dir || id < 0)
		die(path);
	if (id >= MAX_DIRS) {
		errno = E2BIG;
		die(path);
	}
	dirs[id] = strdup(path);
	while ((entry = readdir(dir))) {
		char below[4096];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		watch_tree(fd, below);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	static char buffer[65536] __attribute__((aligned(8)));
	int fd = inotify_init1(IN_CLOEXEC);
	ssize_t got;

	if (argc != 2) {
		fprintf(stderr, "usage: writewatch DIR\n");
		return 2;
	}
	if (fd < 0)
		die("inotify");
	watch_tree(fd, argv[1]);
	print_event("ready", NULL, NULL);
	while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
		for (char *at = buffer; at < buffer + got;) {
			struct inotify_event *event = (struct inotify_event *)at;

			if (event->mask & IN_Q_OVERFLOW)
				print_event("overflow", NULL, NULL);
			else if (event->len)
				print_event("write", dirs[event->wd], event->name);
			at += sizeof(*event) + event->len;
		}
	}
	die("read");
}
